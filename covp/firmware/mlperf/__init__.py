"""MLPerf Tiny's boards and instruments, virtual, as the official runner expects them."""
