import Foundation
import GatewayService

/// Looks at the files that the configuration names: whether they are there, and who else can read or change them.
enum FilesCheck {
    /// Examines the configuration's file and all files that hold secrets.
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

    /// Examines one file.
    ///
    /// - Parameters:
    ///   - path: The file's path.
    ///   - name: What names it.
    ///   - isSecret: Whether nobody else may read it.
    /// - Returns: The worst that there is to say.
    static func finding(_ path: String, _ name: String, isSecret: Bool) -> Finding {
        let subject = "\(path) (\(name))"
        guard let facts = FileFacts(path) else {
            return .problem(.files, subject, "is not there, or can't be reached", "Make it, or correct its name")
        }
        guard !facts.isDirectory else {
            return .problem(.files, subject, "is a directory", "Name a file")
        }
        guard FileManager.default.isReadableFile(atPath: path) else {
            return .problem(
                .files,
                subject,
                "can't be read by user \(FileFacts.user); it belongs to user \(facts.owner), mode \(facts.modeText)",
                "Give it to the user that runs the gateway: chown"
            )
        }
        return Self.judge(facts, subject, path, isSecret: isSecret)
    }

    private static func judge(_ facts: FileFacts, _ subject: String, _ path: String, isSecret: Bool) -> Finding {
        if facts.isReachableByOthers, facts.mode & 0o002 != 0 {
            return .problem(
                .files,
                subject,
                "can be changed by everybody (mode \(facts.modeText))",
                "chmod o-w \(path)"
            )
        }
        if isSecret, facts.isReachableByOthers, facts.mode & 0o004 != 0 {
            return .problem(.files, subject, "can be read by everybody (mode \(facts.modeText))", "chmod 600 \(path)")
        }
        if ![0, FileFacts.user].contains(facts.owner) {
            return .warning(
                .files,
                subject,
                "belongs to user \(facts.owner), who can change it; this is user \(FileFacts.user)",
                "Give it to root or to the gateway's user, or run doctor as that user"
            )
        }
        return .ok(.files, subject, "mode \(facts.modeText), owner \(facts.owner)")
    }
}
