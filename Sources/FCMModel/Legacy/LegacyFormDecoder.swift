package import NIOCore

/// Reads and validates a form sent to the legacy `/fcm/send` (T3).
///
/// The checks run in the order of the protocol page: decoding, `registration_id`, `dry_run`, `time_to_live`, data keys,
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

    /// The protocol's parameters by name, collected in one pass and not yet checked. Unknown parameters are ignored.
    private struct Fields {
        private static let dataPrefix = "data.".utf8

        private var tokens: [String] = []
        private var dryRun: String?
        private var timeToLive: String?
        /// The options that need no check, and one entry of data for each key. An entry has its key's first position
        /// and last value. The value may be empty.
        private(set) var message = Message()

        init(_ parameters: [FormParameters.Parameter]) {
            // Keys are compared by bytes. As Swift strings, keys with composed and with decomposed letters would be
            // equal.
            var places: [[UInt8]: Int] = [:]
            for parameter in parameters {
                // If a parameter is repeated, its last value counts (P-REPEAT). An empty value counts as absent
                // (P-EMPTY).
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

        /// Reads a flag in any of its spellings (P-BOOL).
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

/// Reads and decodes the parameters of a form or a query, in their order (P-DECODE).
enum FormParameters {
    /// A parameter. Its value is empty if it has no `=`.
    typealias Parameter = (name: String, value: String)

    /// The maximum number of parameters, including empty ones between two `&`. Equal to the bound for members of a JSON
    /// text.
    private static let maxSegments = 2_000

    /// Returns the parameters. Returns `nil` if there are more than 2,000, or if any of them has a broken percent
    /// escape or is not UTF-8.
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
