import EventLoopHTTP
import GatewayCore
import HTTPTypes
package import Logging
import NIOCore
import NIOPosix
package import NIOSSL
import ServiceLifecycle

/// Sends the spans of a ``SpanQueue`` to a receiver: each complete batch at once, and an incomplete one each second.
///
/// At most one request is under way, on an event loop of its own, so a slow or missing receiver delays no message. The
/// queue fills instead, and spans that don't fit are counted. A batch is tried four times. The waits between the tries
/// are 1, 2 and 4 seconds, plus jitter of up to half the wait. A longer `Retry-After` of the receiver counts instead, up to 30 seconds.
package final class SpanExporter: Service {
    private static let timeout = Duration.seconds(10)
    private static let attempts = 4
    private static let longestWaitSeconds = 30

    private let queue: SpanQueue
    private let receiver: OTLPReceiver
    private let resource: OTLPReceiver.Resource
    private let pool: HTTPClientPool
    private let logger: Logger
    private let tick: @Sendable () async throws -> Void
    private let pause: @Sendable (Duration) async throws -> Void

    /// Throws if TLS can't be set up. An incomplete batch is sent after each `tick`; `pause` waits before a retry.
    package init(
        _ queue: SpanQueue,
        to receiver: OTLPReceiver,
        as resource: OTLPReceiver.Resource,
        tls: TLSConfiguration? = nil,
        logger: Logger,
        tick: @escaping @Sendable () async throws -> Void = { try await Task.sleep(for: .seconds(1)) },
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) throws {
        self.queue = queue
        self.receiver = receiver
        self.resource = resource
        self.pool = try HTTPClientPool(
            origin: receiver.origin,
            configuration: HTTPClientConfiguration(tls: tls),
            // A loop of its own, so that the receiver never delays a send.
            eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1),
            logger: logger
        )
        self.logger = logger
        self.tick = tick
        self.pause = pause
    }

    /// Exports until graceful shutdown, then tries each remaining batch once; cancellation drops what is left.
    package func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while (try? await self.tick()) != nil { self.queue.tick() }
            }
            await withGracefulShutdownHandler {
                var isFailing = false
                for await _ in self.queue.wakes { await self.exportAll(&isFailing) }
                await self.exportAll(&isFailing)
                self.queue.tick()
                await self.exportAll(&isFailing)
            } onGracefulShutdown: {
                self.queue.finish()
            }
            group.cancelAll()
        }
        self.queue.close()
        await self.pool.shutdown()
    }

    private func exportAll(_ isFailing: inout Bool) async {
        while !Task.isCancelled, let batch = self.queue.take() {
            let problem = await self.export(batch)
            // An outage is logged twice: at its beginning and at its end.
            switch (problem, isFailing) {
            case (let problem?, false): self.logger.warning("Spans are lost.", metadata: ["cause": "\(problem)"])
            case (nil, true): self.logger.notice("Spans are exported again.")
            case (.some, true), (nil, false): break
            }
            isFailing = problem != nil
        }
    }

    /// Sends a batch until it is accepted or given up; returns why spans of it are lost.
    private func export(_ batch: [TraceSpan]) async -> String? {
        let request = self.receiver.request(batch, of: self.resource)
        var attempt = 1
        while true {
            let (answer, outcome) = await self.send(request)
            switch answer {
            case .taken(rejected: 0):
                self.queue.metrics.count(.taken)
                return nil
            case .taken(let rejected):
                self.queue.metrics.count(.partial)
                self.queue.metrics.count(min(rejected, batch.count), .refused)
                return "the receiver rejects \(rejected) of \(batch.count)"
            case .refused:
                self.queue.metrics.count(.refused)
                self.queue.metrics.count(batch.count, .refused)
                return outcome
            case .unavailable(let retryAfter):
                let isLast = attempt == Self.attempts
                guard !isLast, !Task.isShuttingDownGracefully, !Task.isCancelled else {
                    self.queue.metrics.count(.failed)
                    self.queue.metrics.count(batch.count, isLast ? .unreachable : .shutdown)
                    return outcome
                }
                self.queue.metrics.count(.retried)
                let wait = Self.wait(after: attempt, retryAfter: retryAfter)
                // A shutdown ends the wait early, and a last attempt follows.
                try? await cancelWhenGracefulShutdown { try await self.pause(wait) }
                attempt += 1
            }
        }
    }

    private func send(_ request: HTTPClientRequest) async -> (OTLPReceiver.Answer, outcome: String) {
        do throws(HTTPClientError) {
            let response = try await self.pool.execute(request, deadline: .now() + TimeAmount(Self.timeout))
            let (status, retryAfter) = (response.status.code, response.fields[.retryAfter])
            let answer = OTLPReceiver.Answer(status: status, retryAfter: retryAfter, body: response.body)
            return (answer, "status \(status)")
        } catch {
            // An answer that can't be read is no reason to repeat spans, because the receiver may have accepted them.
            let isAnswer = error.code == .responseTooLarge || error.code == .invalidResponse
            return (isAnswer ? .refused : .unavailable(retryAfter: nil), error.code.rawValue)
        }
    }

    private static func wait(after attempt: Int, retryAfter: Int?) -> Duration {
        let backoff = Duration.seconds(1 << (attempt - 1)) * Double.random(in: 1...1.5)
        return max(backoff, .seconds(min(retryAfter ?? 0, self.longestWaitSeconds)))
    }
}

extension HTTPFieldKey {
    fileprivate static let retryAfter = HTTPFieldKey(.retryAfter)
}
