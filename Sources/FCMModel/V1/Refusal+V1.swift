import StrictJSON

/// Why a request to the v1 facade is refused before anything is sent (V-FACADE), in Google's words.
///
/// Each names one field, by a path such as `message.android.ttl`.
extension Refusal {
    private static func v1(
        _ code: OutcomeCode,
        _ path: String,
        _ detail: String,
        isSyntactic: Bool = false
    ) -> Refusal {
        var refusal = Refusal(code, detail)
        refusal.fields = [Field(code, at: path, detail)]
        refusal.isSyntactic = isSyntactic
        return refusal
    }

    /// The path to a member; a name is cut where it is longer than any real one, since it may be the caller's payload.
    static func path(_ parent: String, _ name: String) -> String {
        let scalars = name.unicodeScalars
        let cut = scalars.prefix(64)
        let name = cut.endIndex < scalars.endIndex ? "\(String(cut))…" : name
        return parent.isEmpty ? name : "\(parent).\(name)"
    }

    // MARK: Refused by Google's front end

    /// A body that can't be read.
    static func unreadable(_ error: JSONParseError) -> Refusal {
        let text = "Invalid JSON payload received. \(error.reason) at position \(error.offset)."
        let names = error.pointer.description.split(separator: "/").map(String.init)
        return .v1(OutcomeCode(error.code), names.reduce("") { Self.path($0, $1) }, text, isSyntactic: true)
    }

    /// A field that v1 does not have.
    static func unknown(_ field: String) -> Refusal {
        let text = "Invalid JSON payload received. Cannot find field: \(field)"
        return .v1(.unknownField, field, text, isSyntactic: true)
    }

    /// A field whose value has another type.
    static func wrongType(_ field: String, _ type: String) -> Refusal {
        .v1(.invalidField, field, "Invalid value at '\(field)' (\(type))", isSyntactic: true)
    }

    /// A field given in both spellings of its name.
    static func repeated(_ field: String) -> Refusal {
        let text = "Invalid JSON payload received. '\(field)' is given twice"
        return .v1(.duplicateKey, field, text, isSyntactic: true)
    }

    // MARK: Refused by FCM

    /// A value that its field can't have.
    static func badValue(_ field: String, _ demand: String) -> Refusal {
        .v1(.invalidField, field, "Invalid value at '\(field)': \(demand)")
    }

    /// A message without a target.
    static var noTarget: Refusal { .v1(.invalidTarget, "message", "Recipient of the message is not set.") }

    /// A message to two targets, or to a malformed one.
    static func badTarget(_ field: String, _ text: String) -> Refusal { .v1(.invalidTarget, field, text) }

    /// A reserved or empty key of `data`.
    static func badDataKey(_ key: String) -> Refusal {
        .v1(.invalidDataKey, "message.data", "Invalid data payload key: \(Self.path("", key))")
    }

    /// A payload over its limit.
    static func tooBig(_ bytes: Int, limit: Int) -> Refusal {
        .v1(
            .messageTooBig,
            "message",
            "The message is too big: \(bytes) bytes of payload, at most \(limit) are allowed"
        )
    }

    // MARK: Refused by the gateway

    /// A field for which the legacy protocol has no place.
    static func notCarried(_ field: String) -> Refusal {
        .v1(.invalidField, field, "'\(field)' can't be sent by the legacy protocol, which serves this project")
    }

    /// A field that differs from the same option of another platform, where legacy has one for all.
    static func disagreement(_ field: String) -> Refusal {
        let text =
            "'\(field)' differs from the same option elsewhere; the legacy protocol, which serves this project, "
            + "has one for all platforms"
        return .v1(.invalidField, field, text)
    }
}
