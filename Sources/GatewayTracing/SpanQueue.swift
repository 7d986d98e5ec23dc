package import GatewayCore
import Metrics
import Synchronization

/// Counts lost spans, and the requests to the receiver.
struct SpanMetrics: Sendable {
    private let losses: [SpanQueue.Loss: Counter]
    private let results: [ExportResult: Counter]

    init(_ metrics: GatewayMetrics) {
        self.losses = metrics.counters(.traceSpansDropped, by: SpanQueue.Loss.self)
        self.results = metrics.counters(.traceExports, by: ExportResult.self)
    }

    func count(_ spans: Int, _ loss: SpanQueue.Loss) { self.losses[loss]?.increment(by: spans) }

    func count(_ result: ExportResult) { self.results[result]?.increment() }
}

/// The result of a request to the receiver, in the categories that the metrics count.
enum ExportResult: String, CaseIterable {
    case taken
    /// The receiver accepted the request, but not all of its spans.
    case partial
    /// The request will be repeated.
    case retried
    case refused
    /// The last attempt failed.
    case failed
}

extension SpanQueue {
    /// The spans that wait for export, oldest first, in batches.
    ///
    /// Pure. A full buffer refuses new spans, because the older ones belong to traces that are already complete. Each
    /// step moves only one span or one reference, because event loops wait for each other during a step.
    struct Buffer {
        enum Outcome: Equatable {
            case added
            /// Added, and its batch is complete.
            case completedBatch
            case lost(Loss)
        }

        let capacity: Int
        let batchSize: Int
        private var complete: [[TraceSpan]] = []
        private var incomplete: [TraceSpan] = []
        private var count = 0
        private var isClosed = false

        init(capacity: Int, batchSize: Int) {
            self.capacity = capacity
            self.batchSize = batchSize
        }

        mutating func add(_ span: TraceSpan) -> Outcome {
            guard !self.isClosed else { return .lost(.shutdown) }
            guard self.count < self.capacity else { return .lost(.queueFull) }
            self.incomplete.append(span)
            self.count += 1
            guard self.incomplete.count == self.batchSize else { return .added }
            self.completeBatch()
            return .completedBatch
        }

        /// Completes a short batch, unless complete ones wait for a slow receiver. It can grow further meanwhile.
        mutating func tick() {
            if self.complete.isEmpty, !self.incomplete.isEmpty { self.completeBatch() }
        }

        private mutating func completeBatch() {
            self.complete.append(self.incomplete)
            self.incomplete = []
        }

        /// Removes and returns the oldest complete batch.
        mutating func take() -> [TraceSpan]? {
            guard !self.complete.isEmpty else { return nil }
            let batch = self.complete.removeFirst()
            self.count -= batch.count
            return batch
        }

        /// Refuses all later spans; returns the number of spans left.
        mutating func close() -> Int {
            let left = self.count
            self = Buffer(capacity: 0, batchSize: self.batchSize)
            self.isClosed = true
            return left
        }
    }
}

/// Accepts spans from every event loop, and passes them to the ``SpanExporter``.
///
///     event loops -> SpanQueue (4,096 spans, batches of 512) -> SpanExporter (one request) -> receiver
///
/// Example: while the receiver is away, 1,000 spans per second fill the queue in four seconds; later spans are lost.
/// For each span, its request takes one lock for a few instructions. The span needs about 1 KiB until its export.
package final class SpanQueue: Sendable {
    /// The reason why a span is lost, in the categories that the metrics count.
    enum Loss: String, CaseIterable {
        /// Spans end faster than the receiver accepts them.
        case queueFull = "queue_full"
        /// No answer, or a failure that outlasted all attempts.
        case unreachable
        /// A retry can't change the status, the answer can't be read, or the receiver counts the span as rejected.
        case refused
        /// The gateway stopped before the span was accepted.
        case shutdown
    }

    static let capacity = 4_096
    static let batchSize = 512

    /// Yields when a batch is complete and after a tick; ends with ``finish()``.
    let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let buffer: Mutex<Buffer>
    let metrics: SpanMetrics

    package init(metrics: GatewayMetrics) {
        self.buffer = Mutex(Buffer(capacity: Self.capacity, batchSize: Self.batchSize))
        self.metrics = SpanMetrics(metrics)
        (self.wakes, self.waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    package func add(_ span: TraceSpan) {
        switch self.buffer.withLock({ $0.add(span) }) {
        case .added: break
        case .completedBatch: self.waker.yield()
        case .lost(let loss): self.metrics.count(1, loss)
        }
    }

    func take() -> [TraceSpan]? { self.buffer.withLock { $0.take() } }

    /// Completes a batch of the waiting spans, however few.
    func tick() {
        self.buffer.withLock { $0.tick() }
        self.waker.yield()
    }

    func finish() { self.waker.finish() }

    /// Drops the waiting spans, and refuses later ones.
    func close() { self.metrics.count(self.buffer.withLock { $0.close() }, .shutdown) }
}
