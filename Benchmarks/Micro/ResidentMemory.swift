#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How much memory the process occupies.
enum ResidentMemory {
    /// Bytes, as Linux tells them; 0 elsewhere.
    static var bytes: Int {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let kibibytes = line.split(separator: " ").compactMap({ Int($0) }).first
        else { return 0 }
        return kibibytes * 1024
    }
}
