/// One recipient's result (T5).
enum RecipientResult: Equatable {
    /// Accepted; with the canonical token if the recipient has a newer one.
    case accepted(messageID: String, canonical: String?)
    case failed(String)
}

/// Writes the answers of T5 to T8.
struct LegacyAnswers {
    let format: LegacyFormat

    func refusal(_ refusal: LegacyRefusal, multicastID: MulticastID) -> Answer {
        switch (self.format, refusal) {
        case (.json, .malformedJSON(let reason)):
            return .text("JSON_PARSING_ERROR: \(reason)\n", status: 400)
        case (.json, .invalidParameters(let reason)):
            return .json(#"{"error":"InvalidParameters","reason":"# + JSONValue.quoted(reason) + "}", status: 400)
        case (.json, .failed(let name, let results?, _)):
            return self.devices(
                Array(repeating: .failed(name.rawValue), count: results),
                isSingle: false,
                multicastID: multicastID
            )
        case (.json, .failed(let name, nil, _)):
            return .json(#"{"error":"# + JSONValue.quoted(name.rawValue) + "}")
        case (.form, .failed(let name, _, _)):
            return .text("Error=" + name.rawValue)
        case (.form, .malformedJSON), (.form, .invalidParameters):
            return .text("Error=" + LegacyErrorName.invalidParameters.rawValue)
        }
    }

    /// The answer to a message to devices.
    ///
    /// Results have the request's order. A request with one device in `to` is single; then `InvalidParameters` has a
    /// status of its own (T9).
    func devices(_ results: [RecipientResult], isSingle: Bool, multicastID: MulticastID) -> Answer {
        switch self.format {
        case .form:
            return .text(results.map(Self.line).joined(separator: "\n"))
        case .json where isSingle && results == [.failed(LegacyErrorName.invalidParameters.rawValue)]:
            return self.refusal(.invalidParameters(reason: "the token's text selects it"), multicastID: multicastID)
        case .json:
            return .json(Self.document(results, multicastID: multicastID))
        }
    }

    func topic(messageID: Int64) -> Answer {
        .json(#"{"message_id":\#(messageID)}"#)
    }

    private static func document(_ results: [RecipientResult], multicastID: MulticastID) -> String {
        var failures = 0
        var canonicals = 0
        var objects: [String] = []
        objects.reserveCapacity(results.count)
        for result in results {
            switch result {
            case .failed(let name):
                failures += 1
                objects.append(#"{"error":"# + JSONValue.quoted(name) + "}")
            case .accepted(let messageID, nil):
                objects.append(#"{"message_id":"# + JSONValue.quoted(messageID) + "}")
            case .accepted(let messageID, let canonical?):
                canonicals += 1
                let id = JSONValue.quoted(messageID)
                objects.append(#"{"message_id":\#(id),"registration_id":\#(JSONValue.quoted(canonical))}"#)
            }
        }
        let counts = #""success":\#(results.count - failures),"failure":\#(failures),"canonical_ids":\#(canonicals)"#
        return #"{"multicast_id":\#(multicastID.value),\#(counts),"results":[\#(objects.joined(separator: ","))]}"#
    }

    private static func line(_ result: RecipientResult) -> String {
        switch result {
        case .failed(let name): "Error=" + name
        case .accepted(let messageID, nil): "id=" + messageID
        case .accepted(let messageID, let canonical?): "id=\(messageID)\nregistration_id=\(canonical)"
        }
    }
}

/// Identifies one request to devices: a positive integer that fits a double's mantissa of 53 bits.
struct MulticastID: Equatable {
    let value: Int64

    static func random() -> Self {
        Self(value: .random(in: 1...(1 << 53 - 1)))
    }
}
