package import NIOCore

/// Reads and validates a form sent to the legacy `/fcm/send` (T3).
///
/// The checks run in the protocol page's order: decoding, `registration_id`, `dry_run`, `time_to_live`, data keys,
/// size.
package enum LegacyFormDecoder {
    package static func decode(_ body: ByteBuffer) throws(Refusal) -> LegacySendRequest {
        guard let parameters = FormParameters.read(body) else {
            let detail = "The form holds a broken escape, is not UTF-8, or has more than 2,000 parameters"
            throw Refusal(.invalidField, detail)
        }
        let fields = Fields(parameters)
        let target = try fields.target()
        var message = fields.message
        message.dryRun = try fields.isDryRun()
        message.timeToLive = try fields.checkedTimeToLive()
        guard !message.data.contains(where: { ValueRules.isRefusedDataKey($0.key) }) else {
            throw Refusal(.invalidDataKey)
        }
        return try LegacySendRequest(target: target, message: message, payloadBytes: message.payloadBytes)
            .checkingSize()
    }

    /// The parameters that the protocol knows, sorted out in one pass and not yet checked; others are ignored.
    private struct Fields {
        private static let dataPrefix = "data.".utf8

        private var tokens: [String] = []
        private var dryRun: String?
        private var timeToLive: String?
        /// The options that can have no wrong value, and one entry of data for each key, at the place where it first
        /// occurs; an empty value is data.
        private(set) var message = Message()

        init(_ parameters: [FormParameters.Parameter]) {
            // By bytes: as texts, composed and decomposed letters would be one key.
            var places: [[UInt8]: Int] = [:]
            for parameter in parameters {
                // The last value of a repeated parameter counts (P-REPEAT); an empty one is absent (P-EMPTY).
                let option = parameter.value.isEmpty ? nil : parameter.value
                switch parameter.name.protocolWord {
                case "registration_id": self.tokens.append(parameter.value)
                case "dry_run": self.dryRun = option
                case "time_to_live": self.timeToLive = option
                case "collapse_key": self.message.collapseKey = option
                case "restricted_package_name": self.message.restrictedPackageName = option
                default:
                    guard parameter.name.utf8.starts(with: Self.dataPrefix) else { continue }
                    let key = Array(parameter.name.utf8.dropFirst(Self.dataPrefix.count))
                    if let place = places[key] {
                        self.message.data[place].value = parameter.value
                    } else {
                        places[key] = self.message.data.count
                        let entry = DataEntry(key: String(decoding: key, as: UTF8.self), value: parameter.value)
                        self.message.data.append(entry)
                    }
                }
            }
        }

        func target() throws(Refusal) -> Target {
            guard self.tokens.count <= 1 else {
                throw Refusal(.invalidField, "registration_id is given more than once")
            }
            guard let token = self.tokens.first, !token.isEmpty else { throw Refusal(.invalidTarget) }
            guard !TopicName.hasLegacyPrefix(token) else { throw Refusal(.invalidToken) }
            return .token(token)
        }

        /// A flag in any of its spellings (P-BOOL).
        func isDryRun() throws(Refusal) -> Bool {
            guard let text = self.dryRun else { return false }
            switch text.protocolWord?.lowercased() {
            case "0", "false": return false
            case "1", "true": return true
            default: throw Refusal(.invalidField, "dry_run must be true or false")
            }
        }

        func checkedTimeToLive() throws(Refusal) -> Int? {
            guard let text = self.timeToLive else { return nil }
            guard let seconds = Int(digits: text), ValueRules.isTimeToLive(seconds) else { throw .invalidTTL }
            return seconds
        }
    }
}

/// Reads the parameters of a form or a query in the order of the text, decoded (P-DECODE).
enum FormParameters {
    /// Without `=` the value is empty.
    typealias Parameter = (name: String, value: String)

    /// As many as a JSON text may have members; a parameter between two `&` counts even where it is empty.
    private static let maxSegments = 2_000

    /// The parameters; `nil` for a broken percent escape or bytes that are not UTF-8, wherever they stand, and for more
    /// than 2,000.
    static func read(_ body: ByteBuffer) -> [Parameter]? {
        var parameters: [Parameter] = []
        var rest = body.readableBytesView
        var segmentCount = 0
        while !rest.isEmpty {
            segmentCount += 1
            guard segmentCount <= Self.maxSegments else { return nil }
            let segment = rest[..<(rest.firstIndex(of: UInt8(ascii: "&")) ?? rest.endIndex)]
            rest = rest[segment.endIndex...].dropFirst()
            guard !segment.isEmpty else { continue }
            let end = segment.firstIndex(of: UInt8(ascii: "=")) ?? segment.endIndex
            guard let name = Self.decode(segment[..<end]), let value = Self.decode(segment[end...].dropFirst()) else {
                return nil
            }
            parameters.append((name, value))
        }
        return parameters
    }

    private static func decode(_ bytes: ByteBufferView) -> String? {
        PercentEncoding.decoded(bytes.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
}
