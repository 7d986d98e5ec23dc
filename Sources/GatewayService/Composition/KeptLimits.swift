import GatewayCore
import GatewayStorage
import Logging

/// What is used up of all quotas, kept from an orderly end to the next start.
///
/// It is never worth a failed start or end: without it, every quota is whole.
struct KeptLimits: Sendable {
    private let limiter: MemoryRateLimiter
    private let file: StateFile
    private let clock: any WallClock
    private let logger: Logger

    /// What is used up by a limiter, in the file of a path.
    init(of limiter: MemoryRateLimiter, in path: String, clock: any WallClock, logger: Logger) {
        self.limiter = limiter
        self.file = StateFile(path: path)
        self.clock = clock
        self.logger = logger
    }

    /// Takes back what the last orderly end kept.
    ///
    /// - Returns: the limits that were in force then, by tenants' keys.
    func load() -> [LimitKey: PolicyHistory] {
        do {
            guard let bytes = try self.file.read(maxBytes: MemoryRateLimiter.maxKeptBytes) else { return [:] }
            let kept = try self.limiter.restore(bytes, now: self.clock.now())
            self.logger.debug(
                "Rate limits go on from where they were",
                metadata: ["buckets": "\(kept.buckets)", "left_out": "\(kept.leftOut)"]
            )
            return kept.policies
        } catch let damage as MemoryRateLimiter.Damage {
            self.logger.warning(
                "The kept rate limits are damaged; every quota is whole",
                metadata: ["cause": "\(damage)"]
            )
        } catch {
            self.logger.warning(
                "The kept rate limits can't be read; every quota is whole",
                metadata: ["cause": "\(error)"]
            )
        }
        return [:]
    }

    /// Keeps what is used up at this moment, with the limits that are in force.
    func save(under tenants: DirectorySnapshot) {
        let policies = Dictionary(tenants.tenants.values.map { ($0.limitKey, $0.policyHistory) }) { $1 }
        let (bytes, kept) = self.limiter.keep(policies: policies, now: self.clock.now())
        do {
            try self.file.write(bytes)
        } catch {
            self.logger.warning(
                "The rate limits can't be kept; after the next start every quota is whole",
                metadata: ["cause": "\(error.message)"]
            )
        }
        if kept.leftOut > 0 {
            self.logger.warning("Not all rate limits are kept", metadata: ["left_out": "\(kept.leftOut)"])
        }
    }
}
