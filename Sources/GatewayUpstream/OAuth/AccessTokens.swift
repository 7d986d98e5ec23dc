package import GatewayCore
import Metrics
import ServiceLifecycle
import Synchronization

/// Runs the exchanges for access tokens that sends ask for.
///
/// A service of its own: an exchange outlives the send that began it, since others wait for the same token.
package final class AccessTokens: Service {
    private let exchange: any TokenExchange
    private let refreshes: [TokenRefresh: Counter]
    private let now: @Sendable () -> ContinuousClock.Instant
    private let requests: AsyncStream<AccessTokenSource>
    private let requester: AsyncStream<AccessTokenSource>.Continuation
    private let hasRun = Atomic(false)
    private let sources = Mutex<[SourceKey: WeakSource]>([:])

    /// What tells credentials apart; where they are used does not matter.
    private struct SourceKey: Hashable {
        var fingerprint: String
        var clientEmail: String
        var privateKeyID: String
    }

    /// A source that somebody may still hold.
    private struct WeakSource {
        weak var source: AccessTokenSource?
    }

    /// Tokens by way of an exchange, which is shut down when the service ends.
    package init(
        exchange: any TokenExchange,
        metrics: GatewayMetrics = GatewayMetrics(),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.exchange = exchange
        self.refreshes = metrics.counters(.oauthRefreshes, by: TokenRefresh.self)
        self.now = now
        (self.requests, self.requester) = AsyncStream.makeStream()
    }

    /// Makes exchanges until graceful shutdown or cancellation; those that were asked for are finished.
    package func run() async throws {
        let isFirst = !self.hasRun.exchange(true, ordering: .acquiringAndReleasing)
        precondition(isFirst, "a service runs once")
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await source in self.requests {
                    group.addTask { await source.exchange(with: self.exchange, counting: self.refreshes) }
                }
            }
        } onGracefulShutdown: {
            self.requester.finish()
        }
        self.requester.finish()
        await self.exchange.shutdown()
    }

    /// The source of tokens for a credential: the one that is in use already, or a new one without a token.
    func source(for credential: ServiceAccountCredential) -> AccessTokenSource {
        let key = SourceKey(
            fingerprint: credential.fingerprint,
            clientEmail: credential.clientEmail,
            privateKeyID: credential.privateKeyID
        )
        return self.sources.withLock { sources in
            if let source = sources[key]?.source { return source }
            let source = AccessTokenSource(credential, now: self.now) { [requester] source in
                if case .enqueued = requester.yield(source) { true } else { false }
            }
            sources = sources.filter { $0.value.source != nil }
            sources[key] = WeakSource(source: source)
            return source
        }
    }
}

/// How an exchange for an access token ended, as it is counted.
enum TokenRefresh: String, CaseIterable {
    case done
    case refused
    case unreachable

    init(_ outcome: Result<IssuedToken, TokenFailure>) {
        switch outcome {
        case .success:
            self = .done
        case .failure(let failure):
            switch failure.kind {
            case .refused: self = .refused
            case .unreachable: self = .unreachable
            }
        }
    }
}
