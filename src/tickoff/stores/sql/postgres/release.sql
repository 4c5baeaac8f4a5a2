-- Let go of a plain lock that this token still holds; a tick given back goes the long way.
UPDATE tickoff_lease
SET version = version + 1, token = '', owner = '', until = 0, let_go = token,
    used = floor(extract(epoch FROM now()) * 1000)::bigint
WHERE name = %(name)s AND token = %(token)s AND tick = 0
    AND until > floor(extract(epoch FROM now()) * 1000)::bigint
