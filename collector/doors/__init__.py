"""The OTLP doors: HTTP and gRPC in front of one `Accept`.

A door checks access, bounds what it reads, decompresses, hands the body on and turns the
result into the answer the protocol asks for. It decodes nothing.
"""
