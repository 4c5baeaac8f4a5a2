"""What tests and benchmarks share: private servers and a proxy that misbehaves."""
