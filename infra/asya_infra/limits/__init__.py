"""The limits of AWS, and the check of synthesized templates against them."""
