package import GatewayCore
import Metrics
import Synchronization

/// Counts lost spans, and the requests to the receiver.
struct SpanMetrics: Sendable {
    private let losses: [SpanLoss: Counter]
    private let results: [ExportResult: Counter]

    init(_ metrics: GatewayMetrics) {
        self.losses = metrics.counters(.traceSpansDropped, by: SpanLoss.self)
        self.results = metrics.counters(.traceExports, by: ExportResult.self)
    }

    func count(_ spans: Int, _ loss: SpanLoss) { self.losses[loss]?.increment(by: spans) }

    func count(_ result: ExportResult) { self.results[result]?.increment() }
}

/// The end of a request to the receiver, as it is counted.
enum ExportResult: String, CaseIterable {
    case taken
    /// The receiver took the request, but not all of its spans.
    case partial
    /// The same is sent again.
    case retried
    case refused
    /// The last attempt failed.
    case failed
}

/// Why a span never arrives, as it is counted.
enum SpanLoss: String, CaseIterable {
    /// The receiver is slower than spans end.
    case queueFull = "queue_full"
    /// No answer, or a failure that outlasted all attempts.
    case unreachable
    /// The receiver doesn't want it: a status that no retry mends, or its own count of rejected spans.
    case refused
    /// The gateway stopped before it was sent.
    case shutdown
}

/// Spans that wait for their export, the oldest first, in batches.
///
/// Pure. A full buffer refuses new spans: the older ones belong to traces that are complete by now. Each step moves one
/// span or one reference, since event loops wait for each other meanwhile.
struct SpanBuffer {
    enum Outcome: Equatable {
        case added
        /// Added, and its batch is complete.
        case completedBatch
        case lost(SpanLoss)
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

    /// Completes a batch that is short, unless others wait: behind a slow receiver it may as well grow.
    mutating func tick() {
        if self.complete.isEmpty, !self.incomplete.isEmpty { self.completeBatch() }
    }

    private mutating func completeBatch() {
        self.complete.append(self.incomplete)
        self.incomplete = []
    }

    /// Returns the oldest complete batch, and forgets it.
    mutating func take() -> [TraceSpan]? {
        guard !self.complete.isEmpty else { return nil }
        let batch = self.complete.removeFirst()
        self.count -= batch.count
        return batch
    }

    /// Refuses all that follows; returns how many spans were left.
    mutating func close() -> Int {
        let left = self.count
        self = SpanBuffer(capacity: 0, batchSize: self.batchSize)
        self.isClosed = true
        return left
    }
}

/// Takes spans from every event loop, and hands them to the ``SpanExporter``.
///
/// A span costs its request one lock that is held for a few instructions. It takes about 1 KiB until it is exported.
package final class SpanQueue: Sendable {
    static let capacity = 4_096
    static let batchSize = 512

    /// Yields when a batch is complete and after a tick; ends with ``finish()``.
    let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let buffer: Mutex<SpanBuffer>
    let metrics: SpanMetrics

    package init(metrics: GatewayMetrics) {
        self.buffer = Mutex(SpanBuffer(capacity: Self.capacity, batchSize: Self.batchSize))
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

    /// Makes a batch of what waits, however little it is.
    func tick() {
        self.buffer.withLock { $0.tick() }
        self.waker.yield()
    }

    func finish() { self.waker.finish() }

    /// Gives up what still waits, and refuses what follows.
    func close() { self.metrics.count(self.buffer.withLock { $0.close() }, .shutdown) }
}
