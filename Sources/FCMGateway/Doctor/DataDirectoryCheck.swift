import Foundation
import GatewayService

/// Looks at the directories that the gateway writes to.
enum DataDirectoryCheck {
    /// With less, the store soon can't grow, and nothing can be recorded.
    static let problemBytes = 64 << 20
    /// With less, somebody should make room.
    static let warningBytes = 1 << 30

    /// Examines the data directory, and the store's where that is another.
    static func examine(_ configuration: GatewayConfiguration) -> [Finding] {
        let store = URL(fileURLWithPath: configuration.databasePath).deletingLastPathComponent().path
        let data = URL(fileURLWithPath: configuration.dataDir).path
        return (store == data ? [data] : [data, store]).flatMap { Self.findings($0) }
    }

    /// Examines one directory.
    static func findings(_ path: String) -> [Finding] {
        guard let facts = FileFacts(path) else { return [Self.missing(path)] }
        guard facts.isDirectory else {
            return [.problem(.dataDirectory, path, "is no directory", "Set dataDir to a directory")]
        }
        let access = Self.access(path, facts)
        let free = (try? FileManager.default.attributesOfFileSystem(forPath: path)[.systemFreeSize]) as? NSNumber
        return [access] + [free.map { Self.space(path, freeBytes: $0.intValue) }].compactMap(\.self)
    }

    /// Judges the space that is left.
    static func space(_ path: String, freeBytes: Int) -> Finding {
        let seen = "\(freeBytes >> 20) MiB are free"
        let advice = "Make room: without any, nothing can be recorded, and what can't be recorded is refused"
        if freeBytes < Self.problemBytes { return .problem(.dataDirectory, path, seen, advice) }
        if freeBytes < Self.warningBytes { return .warning(.dataDirectory, path, seen, advice) }
        return .ok(.dataDirectory, path, seen)
    }

    private static func missing(_ path: String) -> Finding {
        var parent = URL(fileURLWithPath: path).deletingLastPathComponent()
        while parent.path != "/", !FileManager.default.fileExists(atPath: parent.path) {
            parent.deleteLastPathComponent()
        }
        guard FileManager.default.isWritableFile(atPath: parent.path) else {
            return .problem(
                .dataDirectory,
                path,
                "is not there, and user \(FileFacts.user) can't make it in \(parent.path)",
                "Make it, and give it to the gateway's user"
            )
        }
        return .ok(.dataDirectory, path, "is not there yet; serve makes it")
    }

    /// Judges whether a user of this process's rights can work in a directory.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - facts: Whose it is, and what others may do with it.
    ///   - user: The user's id.
    /// - Returns: The worst that there is to say.
    static func access(_ path: String, _ facts: FileFacts, user: Int = FileFacts.user) -> Finding {
        let owner = "owner \(facts.owner), mode \(facts.modeText)"
        let files = FileManager.default
        guard files.isWritableFile(atPath: path), files.isExecutableFile(atPath: path) else {
            return .problem(
                .dataDirectory,
                path,
                "can't be written by user \(FileFacts.user) (\(owner))",
                "chown it to the gateway's user, or run doctor as that user"
            )
        }
        if facts.isReachableByOthers, facts.mode & 0o002 != 0 {
            return .problem(
                .dataDirectory,
                path,
                "everybody can replace what is in it (\(owner))",
                "chmod 700 \(path)"
            )
        }
        // Root can do everything anyway, and owns what Kubernetes gives to a group (fsGroup).
        guard [0, user].contains(facts.owner) else {
            return .warning(
                .dataDirectory,
                path,
                "is not this user's (\(owner); this is user \(user))",
                "Run doctor as the gateway's user, so that it sees what the gateway sees"
            )
        }
        return .ok(.dataDirectory, path, "can be written (\(owner))")
    }
}
