package import NIOCore

/// Reads and validates a form sent to the legacy `/fcm/send` (T3).
///
/// The checks run in the protocol page's order: decoding, `registration_id`, `dry_run`, `time_to_live`, data keys,
/// size. Whatever fails is answered by ``LegacyRefusal/formReply``.
package enum LegacyFormDecoder {
    private static let dataPrefix = "data."

    /// Decodes a body.
    ///
    /// - Throws: the first failing check.
    package static func decode(_ body: ByteBuffer) throws(LegacyRefusal) -> LegacySendRequest {
        guard let parameters = FormParameters(body) else {
            throw .invalidParameters(reason: "The form holds a broken escape or is not UTF-8")
        }
        let target = try Self.target(in: parameters)
        var message = Message()
        message.dryRun = try Self.dryRun(in: parameters)
        message.timeToLive = try Self.timeToLive(in: parameters)
        message.collapseKey = Self.option("collapse_key", in: parameters)
        message.restrictedPackageName = Self.option("restricted_package_name", in: parameters)
        message.data = Self.data(in: parameters)
        guard !message.data.contains(where: { ValueRules.isRefusedDataKey($0.key) }) else {
            throw .error(.invalidDataKey, shape: Self.shape)
        }
        let payloadBytes = message.payloadBytes
        guard payloadBytes <= target.maxPayloadBytes else {
            throw .messageTooBig(payloadBytes: payloadBytes, shape: Self.shape)
        }
        return LegacySendRequest(target: target, message: message, payloadBytes: payloadBytes, localErrors: [:])
    }

    /// A form has one recipient.
    private static var shape: LegacyReply.Shape { .results(count: 1) }

    private static func target(in parameters: FormParameters) throws(LegacyRefusal) -> Target {
        let tokens = parameters.all.filter { $0.name == "registration_id" }.map(\.value)
        guard tokens.count <= 1 else {
            throw .invalidParameters(reason: "registration_id is given more than once")
        }
        guard let token = tokens.first, !token.isEmpty else {
            throw .error(.missingRegistration, shape: Self.shape)
        }
        guard !TopicName.hasLegacyPrefix(token) else {
            throw .error(.invalidRegistration, shape: Self.shape)
        }
        return .token(token)
    }

    /// A flag in any of its spellings (P-BOOL).
    private static func dryRun(in parameters: FormParameters) throws(LegacyRefusal) -> Bool {
        switch Self.option("dry_run", in: parameters)?.lowercased() {
        case nil, "0", "false": return false
        case "1", "true": return true
        default: throw .invalidParameters(reason: "dry_run must be true or false")
        }
    }

    private static func timeToLive(in parameters: FormParameters) throws(LegacyRefusal) -> Int? {
        guard let text = Self.option("time_to_live", in: parameters) else { return nil }
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let seconds = Int(text), ValueRules.isTimeToLive(seconds)
        else { throw .error(.invalidTTL, shape: Self.shape) }
        return seconds
    }

    /// The last value of a repeated parameter (P-REPEAT); an empty one is absent (P-EMPTY).
    private static func option(_ name: String, in parameters: FormParameters) -> String? {
        let value = parameters.all.last { $0.name == name }?.value
        return value?.isEmpty == false ? value : nil
    }

    /// One entry for each key, at the place where it first occurs; an empty value is data.
    private static func data(in parameters: FormParameters) -> [DataEntry] {
        var entries: [DataEntry] = []
        // By bytes: as texts, composed and decomposed letters would be one key.
        var places: [[UInt8]: Int] = [:]
        for parameter in parameters.all where parameter.name.utf8.starts(with: Self.dataPrefix.utf8) {
            let key = Array(parameter.name.utf8.dropFirst(Self.dataPrefix.utf8.count))
            if let place = places[key] {
                entries[place].value = parameter.value
            } else {
                places[key] = entries.count
                entries.append(DataEntry(key: String(decoding: key, as: UTF8.self), value: parameter.value))
            }
        }
        return entries
    }
}
