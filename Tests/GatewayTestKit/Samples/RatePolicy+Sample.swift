package import GatewayCore

extension RatePolicy {
    /// A policy of numbers that are known to be in range.
    ///
    /// - Throws: ``SampleError`` when they are not.
    package static func sample(_ rate: Int, per periodSeconds: Int, burst: Int) throws -> RatePolicy {
        guard let policy = RatePolicy(rate: rate, periodSeconds: periodSeconds, burst: burst) else {
            throw SampleError(what: "policy \(rate) per \(periodSeconds) s, burst \(burst)")
        }
        return policy
    }
}
