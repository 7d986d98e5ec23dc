import GatewayCore
import GatewayStorage
import Logging

/// The file that saves what is used up of all quotas from an orderly end to the next start.
///
/// It is never worth a failed start or end: without it, every quota is whole.
struct LimitSnapshotFile: Sendable {
    private let limiter: MemoryRateLimiter
    private let file: StateFile
    private let clock: any WallClock
    private let logger: Logger

    init(of limiter: MemoryRateLimiter, in path: String, clock: any WallClock, logger: Logger) {
        self.limiter = limiter
        self.file = StateFile(path: path)
        self.clock = clock
        self.logger = logger
    }

    /// Takes back what the last orderly end saved, and returns the limits that were in force then, by tenants' keys.
    func load() -> [LimitKey: PolicyHistory] {
        do {
            guard let bytes = try self.file.read(maxBytes: MemoryRateLimiter.maxSnapshotBytes) else { return [:] }
            let restored = try self.limiter.restore(bytes, now: self.clock.now())
            self.logger.debug(
                "Rate limits go on from where they were",
                metadata: ["buckets": "\(restored.buckets)", "left_out": "\(restored.leftOut)"]
            )
            return restored.policies
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

    func save(under tenants: DirectorySnapshot) {
        let policies = Dictionary(tenants.tenants.values.map { ($0.limitKey, $0.policyHistory) }) { $1 }
        let (bytes, saved) = self.limiter.save(policies: policies, now: self.clock.now())
        do {
            try self.file.write(bytes)
        } catch {
            self.logger.warning(
                "The rate limits can't be kept; after the next start every quota is whole",
                metadata: ["cause": "\(error.message)"]
            )
        }
        if saved.leftOut > 0 {
            self.logger.warning("Not all rate limits are kept", metadata: ["left_out": "\(saved.leftOut)"])
        }
    }
}
