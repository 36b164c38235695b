"""Rules written for other programs: SQL, pandera, dqx."""
