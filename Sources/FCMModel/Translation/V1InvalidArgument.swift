/// Tells the causes of v1's `INVALID_ARGUMENT` apart (TB-INVALID): by the fields that the answer names, and by its
/// texts without regard to case.
enum V1InvalidArgument {
    /// What the legacy protocol calls the cause.
    ///
    /// Without a clue it is `InvalidParameters`: clients delete tokens on `InvalidRegistration`.
    static func name(_ body: V1ErrorBody, kind: TargetKind) -> LegacyErrorName {
        let violations = body.violations.map {
            V1FieldViolation(field: $0.field, description: $0.description.lowercased())
        }
        let texts = [body.message.lowercased()] + violations.map(\.description)
        if violations.contains(where: { $0.field == "message" && $0.description.contains("not set") }) {
            return .missingRegistration
        }
        if Self.mayBlameToken(kind, violations.map(\.field), texts) {
            return .invalidRegistration
        }
        if violations.contains(where: { Self.isPackageName($0.field) }) {
            return .invalidPackageName
        }
        if violations.contains(where: { $0.field.hasSuffix("android.ttl") }) {
            return .invalidTTL
        }
        if texts.contains(where: { $0.hasPrefix("invalid data payload key") }) {
            return .invalidDataKey
        }
        if texts.contains(where: { $0.contains("too big") }) {
            return .messageTooBig
        }
        return .invalidParameters
    }

    /// Whether the answer speaks of the registration token, or of the installation id that stands for one.
    private static func mayBlameToken(_ kind: TargetKind, _ fields: [String], _ texts: [String]) -> Bool {
        switch kind {
        case .topic, .condition:
            false
        case .token, .tokens, .group:
            fields.contains("message.token") || texts.contains { $0.contains("registration token") }
        case .installation, .installations:
            fields.contains("message.fid") || texts.contains { $0.contains("registration token") }
        }
    }

    private static func isPackageName(_ field: String) -> Bool {
        field.contains("restricted_package_name") || field.contains("restrictedPackageName")
    }
}
