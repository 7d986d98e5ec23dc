import Foundation
import GatewayService
import NIOCore

/// What the machine, or the container, lets the process have.
struct MachineFacts: Sendable, Equatable {
    /// File descriptors; nil where nobody knows.
    var descriptors: Int?
    /// Bytes of memory.
    var memoryBytes: Int
    /// Cores, or what of them a container may use.
    var cores: Double
    /// Whether the memory's bound is a container's.
    var isContained: Bool

    /// What this process has.
    static var current: MachineFacts {
        let physical = Int(clamping: ProcessInfo.processInfo.physicalMemory)
        let bounds = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        let bound = bounds.lazy.compactMap { Self.text($0).flatMap { Int($0) } }.first
        let cores = Double(System.coreCount)
        return MachineFacts(
            descriptors: DescriptorPlan.currentLimit,
            memoryBytes: min(physical, bound ?? physical),
            cores: min(cores, Self.coreQuota(Self.text("/sys/fs/cgroup/cpu.max") ?? "") ?? cores),
            isContained: bound.map { $0 < physical } ?? false
        )
    }

    /// The cores that a control group's `cpu.max` allows, as in `150000 100000`; nil for all.
    static func coreQuota(_ text: String) -> Double? {
        let parts = text.split(separator: " ").map { Double($0) }
        guard parts.count == 2, let quota = parts[0], let period = parts[1], period > 0 else { return nil }
        return quota / period
    }

    private static func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path)
            .map { String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) }
    }
}
