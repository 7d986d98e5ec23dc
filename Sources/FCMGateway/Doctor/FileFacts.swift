import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Who owns a file and what others may do with it.
struct FileFacts: Sendable, Equatable {
    /// The owner's user id.
    var owner: Int
    /// The permission bits.
    var mode: Int
    /// Whether it is a directory.
    var isDirectory: Bool
    /// Whether somebody who is neither its owner nor of its group can reach it: all directories above let them through.
    var isReachableByOthers: Bool

    /// Looks at a file, behind symbolic links; nil when it is not there, or can't be reached.
    init?(_ path: String) {
        let url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
            let owner = attributes[.ownerAccountID] as? NSNumber, let mode = attributes[.posixPermissions] as? NSNumber
        else { return nil }
        self.owner = owner.intValue
        self.mode = mode.intValue & 0o7777
        self.isDirectory = attributes[.type] as? FileAttributeType == .typeDirectory
        self.isReachableByOthers = Self.admitsOthers(above: url)
    }

    /// The permission bits as `chmod` writes them.
    var modeText: String {
        let octal = String(self.mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - octal.count)) + octal
    }

    /// The user id of this process.
    static var user: Int { Int(geteuid()) }

    private static func admitsOthers(above url: URL) -> Bool {
        var directory = url.deletingLastPathComponent()
        while true {
            let attributes = try? FileManager.default.attributesOfItem(atPath: directory.path)
            let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0
            guard mode & 0o001 != 0 else { return false }
            if directory.path == "/" { return true }
            directory = directory.deletingLastPathComponent()
        }
    }
}
