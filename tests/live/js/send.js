// node send.js KIND URL SERVICE: live traces through one of the SDK's exporters, until standard
// input ends. Each line of standard output is the outcome of one export as the exporter reports
// it, {"ok": bool, "ids": [span id]}; the last is {"sent": [span id]}.
import { OTLPTraceExporter as Grpc } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as Json } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as Proto } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { SpanKind, context, trace } from "@opentelemetry/api";

const PATIENCE_MS = 60_000;
const EVERY_MS = 10;
const [kind, url, service] = process.argv.slice(2);
const Exporter = { grpc: Grpc, json: Json, proto: Proto }[kind];

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const exporter = new Exporter({ url, compression: "gzip", timeoutMillis: PATIENCE_MS });
const told = {
  export: (spans, done) =>
    exporter.export(spans, (result) => {
      say({ ok: result.code === 0, ids: spans.map((span) => span.spanContext().spanId) });
      done(result);
    }),
  shutdown: () => exporter.shutdown(),
  forceFlush: () => exporter.forceFlush(),
};
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": service }),
  spanProcessors: [
    new BatchSpanProcessor(told, {
      maxQueueSize: 1_000_000,
      maxExportBatchSize: 64,
      scheduledDelayMillis: 100,
      exportTimeoutMillis: PATIENCE_MS,
    }),
  ],
});
const tracer = provider.getTracer("chat-app");
const sent = [];

function chat() {
  const attributes = { "gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny-llama" };
  const call = tracer.startSpan("chat tiny-llama", { kind: SpanKind.CLIENT, attributes });
  const inner = tracer.startSpan("POST", { kind: SpanKind.CLIENT }, trace.setSpan(context.active(), call));
  inner.end();
  call.end();
  sent.push(inner.spanContext().spanId, call.spanContext().spanId);
}

const sending = setInterval(chat, EVERY_MS);
process.stdin.resume();
process.stdin.on("end", async () => {
  clearInterval(sending);
  // A flush that meets a failed export rejects; what failed has been said.
  await provider.forceFlush().catch(() => {});
  await provider.shutdown().catch(() => {});
  say({ sent });
});
