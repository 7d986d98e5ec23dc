import StrictJSON

/// Why a request to the v1 facade is refused before anything is sent (V-FACADE).
package struct V1Refusal: Error, Sendable, Hashable {
    /// Who would refuse it at Google's.
    package enum Layer: Sendable, Hashable {
        /// The front end that reads JSON: bad JSON, unknown names, wrong types. Its answers carry no `FcmError`.
        case frontEnd
        /// FCM: bad values, bad targets, too much of something.
        case service
    }

    /// Who would refuse it.
    package let layer: Layer
    /// The same in the words of the REST contract, for metrics and the audit.
    package let code: OutcomeCode
    /// The field at fault and what is wrong with it.
    package let violation: V1FieldViolation

    private init(_ layer: Layer, _ code: OutcomeCode, _ field: String, _ description: String) {
        self.layer = layer
        self.code = code
        self.violation = V1FieldViolation(field: field, description: description)
    }

    /// What a v1 client gets to see.
    package var reply: V1Reply {
        V1Reply(
            V1Fault(
                status: .invalidArgument,
                code: self.layer == .service ? .invalidArgument : nil,
                message: self.violation.description,
                violation: self.violation
            ),
            code: self.code
        )
    }

    /// The path to a member; a name is cut where it is longer than any real one, since it may be the caller's payload.
    static func path(_ parent: String, _ name: String) -> String {
        let scalars = name.unicodeScalars
        let cut = scalars.prefix(64)
        let name = cut.endIndex < scalars.endIndex ? "\(String(cut))…" : name
        return parent.isEmpty ? name : "\(parent).\(name)"
    }
}

extension V1Refusal {
    /// A body that can't be read.
    static func unreadable(_ error: JSONParseError) -> V1Refusal {
        let code: OutcomeCode =
            switch error.code {
            case .malformed: .malformedJSON
            case .duplicateKey: .duplicateKey
            case .tooDeep: .tooDeep
            case .tooManyMembers: .tooManyMembers
            }
        let text = "Invalid JSON payload received. \(error.reason) at position \(error.offset)."
        let names = error.pointer.description.split(separator: "/").map(String.init)
        return V1Refusal(.frontEnd, code, names.reduce("") { Self.path($0, $1) }, text)
    }

    /// A field that v1 does not have.
    static func unknown(_ field: String) -> V1Refusal {
        V1Refusal(.frontEnd, .unknownField, field, "Invalid JSON payload received. Cannot find field: \(field)")
    }

    /// A field whose value has another type.
    static func wrongType(_ field: String, _ type: String) -> V1Refusal {
        V1Refusal(.frontEnd, .invalidField, field, "Invalid value at '\(field)' (\(type))")
    }

    /// A field given in both spellings of its name.
    static func repeated(_ field: String) -> V1Refusal {
        V1Refusal(.frontEnd, .duplicateKey, field, "Invalid JSON payload received. '\(field)' is given twice")
    }

    /// A value that its field can't have.
    static func badValue(_ field: String, _ demand: String) -> V1Refusal {
        V1Refusal(.service, .invalidField, field, "Invalid value at '\(field)': \(demand)")
    }

    /// A message to nobody.
    static let noTarget = V1Refusal(.service, .invalidTarget, "message", "Recipient of the message is not set.")

    /// A message to two targets, or to one that is none.
    static func badTarget(_ field: String, _ text: String) -> V1Refusal {
        V1Refusal(.service, .invalidTarget, field, text)
    }

    /// A reserved or empty key of `data`.
    static func badDataKey(_ key: String) -> V1Refusal {
        let key = Self.path("", key)
        return V1Refusal(.service, .invalidDataKey, "message.data", "Invalid data payload key: \(key)")
    }

    /// A payload over its limit.
    static func tooBig(_ bytes: Int, limit: Int) -> V1Refusal {
        let text = "The message is too big: \(bytes) bytes of payload, at most \(limit) are allowed"
        return V1Refusal(.service, .messageTooBig, "message", text)
    }

    /// A field for which the legacy protocol has no place.
    static func notCarried(_ field: String) -> V1Refusal {
        let text = "'\(field)' can't be sent by the legacy protocol, which serves this project"
        return V1Refusal(.service, .invalidField, field, text)
    }

    /// A field that says something else than the same option of another platform, where legacy has one for all.
    static func disagreement(_ field: String) -> V1Refusal {
        let text =
            "'\(field)' differs from the same option elsewhere; the legacy protocol, which serves this project, "
            + "has one for all platforms"
        return V1Refusal(.service, .invalidField, field, text)
    }
}
