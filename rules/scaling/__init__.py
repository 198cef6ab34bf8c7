"""When replicas are added and when one may go: signals, and the autoscalers that read them."""
