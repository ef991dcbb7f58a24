"""Models become programs: what runs where and when, which schedules, tuning."""
