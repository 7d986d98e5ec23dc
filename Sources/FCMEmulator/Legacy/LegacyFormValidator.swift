/// Checks one form request to `/fcm/send` (T3, P-*).
///
/// Order: decoding, `registration_id`, `dry_run`, `time_to_live`, data keys, size.
struct LegacyFormValidator {
    private static let dataPrefix = "data."
    private var registrationIDs: [String] = []
    private var data: [String: String] = [:]
    /// The last non-empty value of each option (P-REPEAT, P-EMPTY).
    private var options: [String: String] = [:]
    private var notes: [String] = []

    /// Checks the bytes of a request body.
    static func validate(_ body: [UInt8]) throws(LegacyRefusal) -> AcceptedMessage {
        var validator = LegacyFormValidator()
        try validator.read(body)
        return try validator.message()
    }

    private mutating func read(_ body: [UInt8]) throws(LegacyRefusal) {
        let fields: [(name: String, value: String)]
        do {
            fields = try FormFields.read(body)
        } catch {
            throw .invalidParameters(reason: error.reason)
        }
        for (name, value) in fields {
            switch name {
            case "registration_id":
                self.registrationIDs.append(value)
            case "collapse_key", "time_to_live", "restricted_package_name", "dry_run":
                self.options[name] = value.isEmpty ? nil : value
            case _ where name.hasPrefix(Self.dataPrefix):
                self.data[String(name.dropFirst(Self.dataPrefix.count))] = value
            default:
                self.notes.append("the parameter \(name) is ignored")
            }
        }
    }

    private func message() throws(LegacyRefusal) -> AcceptedMessage {
        let target = MessageTarget.device(try self.token())
        let isDryRun = try self.isDryRun()
        let content = DeliveredMessage(
            data: self.data,
            collapseKey: self.options["collapse_key"],
            timeToLive: try self.timeToLive(),
            restrictedPackageName: self.options["restricted_package_name"]
        )
        try PayloadRules.check(content, target: target)
        return AcceptedMessage(target: target, content: content, isDryRun: isDryRun, notes: self.notes)
    }

    private func token() throws(LegacyRefusal) -> String {
        guard self.registrationIDs.count <= 1 else {
            throw .invalidParameters(reason: "more than one registration_id")
        }
        guard let token = self.registrationIDs.first, !token.isEmpty else {
            throw .failed(.missingRegistration, results: 1, reason: "no registration_id")
        }
        guard !token.hasPrefix(TopicName.prefix) else {
            throw .failed(.invalidRegistration, results: 1, reason: "a form cannot address a topic")
        }
        return token
    }

    private func isDryRun() throws(LegacyRefusal) -> Bool {
        guard let text = self.options["dry_run"] else { return false }
        switch text.lowercased() {
        case "1", "true": return true
        case "0", "false": return false
        default: throw .invalidParameters(reason: "dry_run is neither true nor false")
        }
    }

    private func timeToLive() throws(LegacyRefusal) -> Int? {
        guard let text = self.options["time_to_live"] else { return nil }
        // `Int(_:)` also reads a sign; it returns nil on overflow.
        let isDigits = text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isDigits, let seconds = Int(text), PayloadRules.timeToLive.contains(seconds) else {
            throw .failed(.invalidTTL, results: 1, reason: "time_to_live is not an integer from 0 to 2419200")
        }
        return seconds
    }
}
