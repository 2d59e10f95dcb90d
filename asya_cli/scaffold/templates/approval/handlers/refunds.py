"""The handlers of refunds. Annotations are checked before a handler is called."""

from dataclasses import dataclass


@dataclass
class Refund:
    order: str
    amount: float


@dataclass
class ApprovedRefund:
    order: str
    amount: float
    approved: bool
    approved_by: str


@dataclass
class PaidRefund:
    order: str
    paid: float
    approved_by: str


def check_refund(payload: Refund) -> Refund:
    """Refuse an amount that is not positive."""
    if payload.amount <= 0:
        raise ValueError(f"the amount of order {payload.order} is {payload.amount}")
    return payload


def pay_refund(payload: ApprovedRefund) -> PaidRefund:
    """Pay the refund, or nothing if it was not approved."""
    paid = payload.amount if payload.approved else 0.0
    return PaidRefund(payload.order, paid, payload.approved_by)
