"""Which traces of what was sent must have a row: those of which a call or a server's span came."""

import numpy as np

from tailburn.collector.hops.classify import Classifier
from tailburn.collector.hops.columns import Role
from tailburn.collector.hops.rules import load_rules
from tailburn.collector.otlp.decoder import Decoder


class Arrived:
    """Takes the bodies that are sent, as the service's own rules see them.

    An HTTP client's span alone is no request: it may have called anything that has that path.
    """

    def __init__(self) -> None:
        rules = load_rules()
        self._decoder = Decoder(rules.wanted)
        self._classifier = Classifier(rules, self._decoder.dictionary, self._decoder.resources)

    def take(self, body: bytes) -> None:
        """One ExportTraceServiceRequest."""
        self._decoder.add(bytearray(body), received_ns=0, tenant="")

    def traces(self) -> frozenset[str]:
        """Their ids in hex."""
        batch = self._decoder.take()
        told = np.isin(self._classifier.classify(batch).role, (Role.CALL, Role.SERVER))
        return frozenset(trace.tobytes().hex() for trace in np.unique(batch.trace[told], axis=0))
