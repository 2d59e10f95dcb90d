"""`asya job`: the job runs of heavy actors."""
