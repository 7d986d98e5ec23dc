package import GatewayCore

extension Timestamp {
    /// 2026-03-01T12:00:00Z, where tests begin.
    package static let sample = Timestamp(microseconds: 1_772_366_400_000_000)
}
