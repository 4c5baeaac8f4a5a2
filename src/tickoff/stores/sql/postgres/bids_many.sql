    SELECT clock.now, b.*
    FROM clock, json_to_recordset(%(bids)s::json) AS b (
        name text, token text, owner text, tick bigint, ttl bigint, scheduled smallint,
        fence bigint, since bigint, steered bigint, blank boolean
    )
