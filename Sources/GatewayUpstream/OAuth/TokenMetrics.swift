package import CoreMetrics
import Metrics

/// What is counted of exchanges for access tokens.
package final class TokenMetrics: Sendable {
    private let done: Counter
    private let refused: Counter
    private let unreachable: Counter

    /// Metrics made by a factory.
    package init(factory: any MetricsFactory) {
        func counter(_ result: String) -> Counter {
            Counter(label: "fcmgw_oauth_refresh_total", dimensions: [("result", result)], factory: factory)
        }
        self.done = counter("done")
        self.refused = counter("refused")
        self.unreachable = counter("unreachable")
    }

    /// Counts an exchange.
    func count(_ outcome: Result<IssuedToken, TokenFailure>) {
        switch outcome {
        case .success:
            self.done.increment()
        case .failure(let failure):
            switch failure.kind {
            case .refused: self.refused.increment()
            case .unreachable: self.unreachable.increment()
            }
        }
    }
}
