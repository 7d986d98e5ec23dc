import Foundation
import GatewayService

/// The owner of a file and the access of others.
struct FileFacts: Sendable, Equatable {
    var owner: Int
    var mode: Int
    var isDirectory: Bool
    /// True if all directories above the file admit users other than its owner and group.
    var isReachableByOthers: Bool

    /// Follows symbolic links and examines the file; `nil` if the file is missing or unreachable.
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

    var modeText: String {
        let octal = String(self.mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - octal.count)) + octal
    }

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

/// Checks that the files named by the configuration exist, are readable, and are closed to other users.
enum FilesCheck {
    static func examine(
        file: String?,
        environment: [String: String],
        _ configuration: GatewayConfiguration?
    ) -> [Finding] {
        var findings: [Finding] = []
        if let file { findings.append(Self.finding(file, "the configuration's file", isSecret: false)) }
        for key in ConfigurationTable.keys where key.isSecret {
            let variable = "\(key.variable)_FILE"
            guard let path = environment[variable], !path.isEmpty else { continue }
            findings.append(Self.finding(path, variable, isSecret: true))
        }
        for (section, tls) in [("http", configuration?.http.tls), ("admin", configuration?.admin.tls)] {
            guard let file = tls?.privateKeyFile else { continue }
            findings.append(Self.finding(file, "\(section).tls.privateKeyFile", isSecret: true))
        }
        return findings
    }

    static func finding(_ path: String, _ name: String, isSecret: Bool) -> Finding {
        let subject = "\(path) (\(name))"
        guard let facts = FileFacts(path) else {
            return .problem(.files, subject, "does not exist, or can't be reached", "Create it, or correct its name")
        }
        guard !facts.isDirectory else {
            return .problem(.files, subject, "is a directory", "Name a file")
        }
        guard FileManager.default.isReadableFile(atPath: path) else {
            return .problem(
                .files,
                subject,
                "can't be read by user \(FileFacts.user); it belongs to user \(facts.owner), mode \(facts.modeText)",
                "chown it to the user that runs the gateway"
            )
        }
        return Self.finding(facts, subject, path, isSecret: isSecret)
    }

    private static func finding(_ facts: FileFacts, _ subject: String, _ path: String, isSecret: Bool) -> Finding {
        if facts.isReachableByOthers, facts.mode & 0o002 != 0 {
            let seen = "can be changed by everybody (mode \(facts.modeText))"
            return .problem(.files, subject, seen, "chmod o-w \(path)")
        }
        if isSecret, facts.isReachableByOthers, facts.mode & 0o004 != 0 {
            return .problem(.files, subject, "can be read by everybody (mode \(facts.modeText))", "chmod 600 \(path)")
        }
        if ![0, FileFacts.user].contains(facts.owner) {
            let seen = "belongs to user \(facts.owner), who can change it; this process runs as user \(FileFacts.user)"
            let advice = "chown it to root or to the gateway's user, or run doctor as the gateway's user"
            return .warning(.files, subject, seen, advice)
        }
        return .ok(.files, subject, "mode \(facts.modeText), owner \(facts.owner)")
    }
}

/// Examines the directories that the gateway writes to.
enum DataDirectoryCheck {
    /// Below this, the store is about to fill the disk, and then nothing can be recorded.
    static let problemBytes = 64 << 20
    /// Below this, the operator should free space.
    static let warningBytes = 1 << 30

    static func examine(_ configuration: GatewayConfiguration) -> [Finding] {
        let path = configuration.postgreSQL == nil ? configuration.databasePath : configuration.dataDir + "/store"
        let store = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let data = URL(fileURLWithPath: configuration.dataDir).path
        return (store == data ? [data] : [data, store]).flatMap { Self.findings($0) }
    }

    private static func findings(_ path: String) -> [Finding] {
        guard let facts = FileFacts(path) else { return [Self.missing(path)] }
        guard facts.isDirectory else {
            return [.problem(.dataDirectory, path, "is not a directory", "Set dataDir to a directory")]
        }
        let access = Self.access(path, facts)
        return [access] + [Self.freeBytes(path).map { Self.space(path, freeBytes: $0) }].compactMap(\.self)
    }

    /// Returns the free bytes on the disk of a file or directory.
    static func freeBytes(_ path: String) -> Int? {
        let free = try? FileManager.default.attributesOfFileSystem(forPath: path)[.systemFreeSize] as? NSNumber
        return free?.intValue
    }

    static func space(_ path: String, freeBytes: Int) -> Finding {
        let seen = "\(freeBytes >> 20) MiB are free"
        let advice = "Free some space: without it nothing can be recorded, and sends that can't be recorded are refused"
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
            let seen = "does not exist, and user \(FileFacts.user) can't create it in \(parent.path)"
            return .problem(.dataDirectory, path, seen, "Create it, and give it to the gateway's user")
        }
        return .ok(.dataDirectory, path, "does not exist yet; fcm-gateway serve creates it")
    }

    static func access(_ path: String, _ facts: FileFacts, user: Int = FileFacts.user) -> Finding {
        let owner = "owner \(facts.owner), mode \(facts.modeText)"
        let files = FileManager.default
        guard files.isWritableFile(atPath: path), files.isExecutableFile(atPath: path) else {
            let seen = "can't be written by user \(FileFacts.user) (\(owner))"
            return .problem(.dataDirectory, path, seen, "chown it to the gateway's user, or run doctor as that user")
        }
        if facts.isReachableByOthers, facts.mode & 0o002 != 0 {
            return .problem(.dataDirectory, path, "any user can replace its files (\(owner))", "chmod 700 \(path)")
        }
        // Root may own the directory: root has access anyway, and with fsGroup Kubernetes leaves root as the owner.
        guard [0, user].contains(facts.owner) else {
            let seen = "belongs to another user (\(owner)); this process runs as user \(user)"
            let advice = "Run doctor as the gateway's user"
            return .warning(.dataDirectory, path, seen, advice)
        }
        return .ok(.dataDirectory, path, "can be written (\(owner))")
    }
}
