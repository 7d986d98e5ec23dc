import Synchronization
package import Tracing

/// A tracer that speaks W3C Trace Context and remembers every span, in the order in which they began.
///
/// A span of a trace that is not sampled is remembered too, but takes no attributes.
package final class RecordingTracer: Tracer {
    /// What is known of a span.
    package struct Record: Sendable {
        package var name: String
        package var kind: SpanKind
        package var traceID: String
        package var id: String
        package var parentID: String?
        package var isSampled: Bool
        package var state: String?
        package var attributes: [String: String] = [:]
        package var status: SpanStatus?
        package var errors = 0
        package var ends = 0
    }

    /// One span.
    package struct Span: Tracing.Span {
        private let tracer: RecordingTracer
        private let index: Int
        package let context: InstrumentationContext

        fileprivate init(tracer: RecordingTracer, index: Int, context: InstrumentationContext) {
            self.tracer = tracer
            self.index = index
            self.context = context
        }

        package var operationName: String {
            get { self.tracer.record(self.index).name }
            nonmutating set { self.tracer.change(self.index) { $0.name = newValue } }
        }

        package var attributes: SpanAttributes {
            get {
                SpanAttributes(self.tracer.record(self.index).attributes.mapValues { .string($0) })
            }
            nonmutating set {
                var attributes: [String: String] = [:]
                newValue.forEach { name, value in
                    switch value {
                    case .string(let text): attributes[name] = text
                    case .int64(let number): attributes[name] = String(number)
                    default: attributes[name] = "\(value)"
                    }
                }
                self.tracer.change(self.index) { $0.attributes = attributes }
            }
        }

        package var isRecording: Bool { self.tracer.record(self.index).isSampled }

        package func setStatus(_ status: SpanStatus) { self.tracer.change(self.index) { $0.status = status } }

        /// Is not remembered.
        package func addEvent(_ event: SpanEvent) {}

        /// Is not remembered.
        package func addLink(_ link: SpanLink) {}

        package func recordError<Instant: TracerInstant>(
            _ error: any Error,
            attributes: SpanAttributes,
            at instant: @autoclosure () -> Instant
        ) {
            self.tracer.change(self.index) { $0.errors += 1 }
        }

        package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
            self.tracer.change(self.index) { $0.ends += 1 }
        }
    }

    /// Where a span's place in its trace stands in a context.
    private enum Key: InstrumentationContextKey {
        typealias Value = Place
    }

    private struct Place: Sendable {
        var traceID: String
        var spanID: String
        var isSampled: Bool
        var state: String?
        var baggage: String?
    }

    private let records = Mutex<[Record]>([])

    package init() {}

    package var spans: [Record] { self.records.withLock { $0 } }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String,
        context: @autoclosure () -> InstrumentationContext,
        ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant,
        function: String,
        file fileID: String,
        line: UInt
    ) -> Span {
        var context = context()
        let parent = context[Key.self]
        let index = self.records.withLock { records in
            let number = String(records.count + 1, radix: 16)
            let id = String(repeating: "0", count: 16 - number.count) + number
            records.append(
                Record(
                    name: operationName,
                    kind: kind,
                    traceID: parent?.traceID ?? String(repeating: "a", count: 16) + id,
                    id: id,
                    parentID: parent?.spanID,
                    isSampled: parent?.isSampled ?? true,
                    state: parent?.state
                )
            )
            return records.count - 1
        }
        let record = self.record(index)
        context[Key.self] = Place(
            traceID: record.traceID,
            spanID: record.id,
            isSampled: record.isSampled,
            state: record.state,
            baggage: parent?.baggage
        )
        return Span(tracer: self, index: index, context: context)
    }

    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier,
        into context: inout InstrumentationContext,
        using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let text = extractor.extract(key: "traceparent", from: carrier) else { return }
        // A tracer that believes whatever it is given: what is malformed must not get here.
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { String($0) }
        context[Key.self] = Place(
            traceID: parts.count > 1 ? parts[1] : text,
            spanID: parts.count > 2 ? parts[2] : text,
            isSampled: parts.last != "00",
            state: extractor.extract(key: "tracestate", from: carrier),
            baggage: extractor.extract(key: "baggage", from: carrier)
        )
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: InstrumentationContext,
        into carrier: inout Carrier,
        using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let place = context[Key.self] else { return }
        let flags = place.isSampled ? "01" : "00"
        injector.inject("00-\(place.traceID)-\(place.spanID)-\(flags)", forKey: "traceparent", into: &carrier)
        if let state = place.state { injector.inject(state, forKey: "tracestate", into: &carrier) }
        if let baggage = place.baggage { injector.inject(baggage, forKey: "baggage", into: &carrier) }
    }

    private func record(_ index: Int) -> Record { self.records.withLock { $0[index] } }

    private func change(_ index: Int, _ body: (inout Record) -> Void) { self.records.withLock { body(&$0[index]) } }
}
