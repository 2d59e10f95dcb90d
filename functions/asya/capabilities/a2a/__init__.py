"""Tools for other agents: Agent2Agent. `routes.wiring` builds the routes; `lambdas.wiring` holds the handlers for push."""
