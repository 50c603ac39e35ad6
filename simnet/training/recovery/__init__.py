"""What a job keeps, and what it does when one of its processes dies."""
