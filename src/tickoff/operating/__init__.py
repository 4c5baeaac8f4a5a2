"""See, explain and steer: what operators ask, answered from what the store keeps."""
