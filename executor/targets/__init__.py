"""What a run can be done by: one file each."""
