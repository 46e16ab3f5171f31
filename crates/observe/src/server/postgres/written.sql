SELECT c.num_timed + c.num_requested AS checkpoints,
c.buffers_written + b.buffers_clean + (SELECT coalesce(sum(writes), 0) FROM pg_stat_io
WHERE backend_type NOT IN ('checkpointer', 'background writer')) AS written
FROM pg_stat_checkpointer c, pg_stat_bgwriter b
