import StrictJSON

/// The fields of one v1 message type, by both spellings of their names.
struct V1Schema: Sendable {
    indirect enum Kind: Sendable {
        case text
        /// `#` and six hexadecimal digits.
        case color
        /// A label for analytics: 1 to 50 of the characters that topic names may have.
        case label
        case link
        case choice([String], inAnyCase: Bool)
        case duration
        /// A duration of at most four weeks.
        case timeToLive
        case flag
        /// An integer, as a number or as text.
        case count
        /// A number from 0 to 1.
        case fraction
        case texts
        case durations
        /// An object whose values are strings.
        case textMap
        /// An object of texts with the id by which APNs collapses messages.
        case appleHeaders
        case collapseID
        /// An object that v1 passes through.
        case structure
        case message(V1Schema)
    }

    struct Field: Sendable {
        /// The name in `snake_case`, as on the protocol page.
        let name: String
        let kind: Kind
        /// The field's index within its type.
        let index: Int
    }

    let count: Int
    private let fields: [String: Field]

    init(_ fields: KeyValuePairs<String, Kind>) {
        var known: [String: Field] = [:]
        for (index, field) in fields.enumerated() {
            let value = Field(name: field.key, kind: field.value, index: index)
            known[field.key] = value
            known[Self.camelCase(field.key)] = value
        }
        self.fields = known
        self.count = fields.count
    }

    subscript(name: String) -> Field? {
        name.protocolWord.flatMap { self.fields[$0] }
    }

    /// Returns the end of a sentence that names a similar field, or an empty text.
    func hint(for name: String) -> String {
        name.protocolWord.map { NearestName.hint(for: $0, among: self.names) } ?? ""
    }

    /// The names in `snake_case`.
    var names: [String] { Set(self.fields.values.map(\.name)).sorted() }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        let others = words.dropFirst().map { "\($0.prefix(1).uppercased())\($0.dropFirst())" }
        return words.prefix(1).joined() + others.joined()
    }
}

extension V1Schema {
    static let request = V1Schema(["validate_only": .flag, "message": .message(Self.message)])

    /// A message (http-v1, section 3).
    static let message = V1Schema([
        "name": .text,
        "token": .text,
        "fid": .text,
        "topic": .text,
        "condition": .text,
        "data": .textMap,
        "notification": .message(Self.notification),
        "android": .message(Self.android),
        "apns": .message(Self.apns),
        "webpush": .message(Self.webpush),
        "fcm_options": .message(Self.options),
    ])

    static let notification = V1Schema(["title": .text, "body": .text, "image": .text])

    static let android = V1Schema([
        "collapse_key": .text,
        "priority": .choice(["NORMAL", "HIGH"], inAnyCase: true),
        "ttl": .timeToLive,
        "restricted_package_name": .text,
        "data": .textMap,
        "notification": .message(Self.androidNotification),
        "fcm_options": .message(Self.options),
        "direct_boot_ok": .flag,
        "bandwidth_constrained_ok": .flag,
        "restricted_satellite_ok": .flag,
    ])

    static let androidNotification = V1Schema([
        "title": .text,
        "body": .text,
        "icon": .text,
        "color": .color,
        "sound": .text,
        "tag": .text,
        "click_action": .text,
        "body_loc_key": .text,
        "body_loc_args": .texts,
        "title_loc_key": .text,
        "title_loc_args": .texts,
        "channel_id": .text,
        "image": .text,
        "ticker": .text,
        "sticky": .flag,
        "event_time": .text,
        "local_only": .flag,
        "notification_priority": .choice(
            ["PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"],
            inAnyCase: false
        ),
        "default_sound": .flag,
        "default_vibrate_timings": .flag,
        "default_light_settings": .flag,
        "vibrate_timings": .durations,
        "visibility": .choice(["PRIVATE", "PUBLIC", "SECRET"], inAnyCase: false),
        "notification_count": .count,
        "light_settings": .message(Self.lightSettings),
        "proxy": .choice(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"], inAnyCase: false),
    ])

    static let apns = V1Schema([
        "headers": .appleHeaders,
        "payload": .structure,
        "fcm_options": .message(Self.apnsOptions),
        "live_activity_token": .text,
    ])

    static let webpush = V1Schema([
        "headers": .textMap,
        "data": .textMap,
        "notification": .structure,
        "fcm_options": .message(Self.webpushOptions),
    ])

    private static let lightSettings = V1Schema([
        "color": .message(V1Schema(["red": .fraction, "green": .fraction, "blue": .fraction, "alpha": .fraction])),
        "light_on_duration": .duration,
        "light_off_duration": .duration,
    ])

    private static let options = V1Schema(["analytics_label": .label])
    private static let apnsOptions = V1Schema(["analytics_label": .label, "image": .text])

    static let webpushOptions = V1Schema(["link": .link, "analytics_label": .label])

    /// A part of a body that HTTP v1 refuses.
    struct Problem {
        enum Reason {
            /// The hint names a similar field.
            case unknown(hint: String)
            /// The type in Google's words, and in plain ones.
            case wrongType(String, String)
            case repeated
            case badValue(String)
        }

        let reason: Reason
        let path: V1Path
    }

    /// Checks a body against v1's fields. Google's front end checks all names and types, and then FCM checks the values.
    struct Checker {
        /// The most problems that are noted of either sort.
        private let limit: Int
        /// The wrong names and types.
        private(set) var misformed: [Problem] = []
        private(set) var badValues: [Problem] = []

        init(limit: Int) {
            self.limit = limit
        }

        private var isFull: Bool { self.misformed.count >= self.limit }

        /// Checks a value and all known parts of it. `null` counts as absent everywhere.
        mutating func check(_ value: JSONValue, _ kind: V1Schema.Kind, at path: @autoclosure () -> V1Path) {
            guard !value.isNull, !self.isFull else { return }
            switch kind {
            case .text, .color, .label, .link, .choice, .duration, .timeToLive:
                guard value.kind == .string else { return self.note(.notText, at: path()) }
                self.checkText(value, kind, at: path())
            case .flag:
                guard value.bool != nil else { return self.note(.wrongType("TYPE_BOOL", "true or false"), at: path()) }
            case .count:
                guard Self.isWhole(value) else {
                    return self.note(.wrongType("TYPE_INT32", "a whole number of 32 bits"), at: path())
                }
            case .fraction:
                guard let number = value.number else {
                    return self.note(.wrongType("TYPE_FLOAT", "a number"), at: path())
                }
                if !(0...1).contains(Double(number.text) ?? .nan), self.badValues.count < self.limit {
                    self.badValues.append(Problem(reason: .badValue("a number from 0 to 1"), path: path()))
                }
            case .texts, .durations:
                guard let elements = value.elements, !elements.contains(where: { $0.kind != .string }) else {
                    return self.note(.wrongType("a list of TYPE_STRING", "an array of strings"), at: path())
                }
                guard case .durations = kind else { return }
                for element in elements { self.checkText(element, .duration, at: path()) }
            case .textMap, .appleHeaders:
                guard let members = value.members else {
                    return self.note(.wrongType("a map of TYPE_STRING", "an object of strings"), at: path())
                }
                for member in members where !member.value.isNull && !self.isFull {
                    guard member.value.kind == .string else {
                        self.note(.notText, at: path().appending(member.key))
                        continue
                    }
                    guard case .appleHeaders = kind, member.keyEquals("apns-collapse-id") else { continue }
                    self.checkText(member.value, .collapseID, at: path().appending(member.key))
                }
            case .collapseID: break
            case .structure:
                guard value.members != nil else { return self.note(.noObject, at: path()) }
            case .message(let schema):
                self.check(value, schema, at: path())
            }
        }

        private mutating func check(_ value: JSONValue, _ schema: V1Schema, at path: @autoclosure () -> V1Path) {
            guard let members = value.members else { return self.note(.noObject, at: path()) }
            var seen = Array(repeating: false, count: schema.count)
            for member in members where !self.isFull {
                let name = member.key
                guard let field = schema[name] else {
                    self.note(.unknown(hint: schema.hint(for: name)), at: path().appending(name))
                    continue
                }
                guard !seen[field.index] else {
                    self.note(.repeated, at: path().appending(field.name))
                    continue
                }
                seen[field.index] = true
                self.check(member.value, field.kind, at: path().appending(field.name))
            }
        }

        private mutating func note(_ reason: Problem.Reason, at path: V1Path) {
            self.misformed.append(Problem(reason: reason, path: path))
        }

        /// Notes an invalid text. The empty text counts as absent.
        private mutating func checkText(_ value: JSONValue, _ kind: V1Schema.Kind, at path: @autoclosure () -> V1Path) {
            if case .text = kind { return }
            guard self.badValues.count < self.limit, let text = value.string, !text.isEmpty else { return }
            let demand: String? =
                switch kind {
                case .color: ValueRules.isColor(text) ? nil : "# and six hexadecimal digits"
                case .label: Self.isLabel(text) ? nil : "1 to 50 characters of A-Z a-z 0-9 - _ . ~ %"
                case .link: ValueRules.isHTTPS(text) ? nil : "an address with https"
                case .choice(let words, let inAnyCase):
                    text.protocolWord.map { words.contains(inAnyCase ? $0.uppercased() : $0) } ?? false
                        ? nil : "one of \(words.joined(separator: ", "))"
                case .duration: V1Duration(text) == nil ? "a duration such as 3.5s" : nil
                case .timeToLive:
                    Self.isTimeToLive(text) ? nil : "a duration such as 3600s, at most \(Message.maxTimeToLive)s"
                case .collapseID:
                    text.utf8.count <= V1MessageWriter.maxCollapseIDBytes
                        ? nil : "at most \(V1MessageWriter.maxCollapseIDBytes) bytes"
                case .text, .flag, .count, .fraction, .texts, .durations, .textMap, .appleHeaders, .structure, .message:
                    nil
                }
            if let demand { self.badValues.append(Problem(reason: .badValue(demand), path: path())) }
        }

        private static func isWhole(_ value: JSONValue) -> Bool {
            let number = value.number ?? value.string.flatMap { JSONNumber(text: $0) }
            return number?.integer.flatMap { Int32(exactly: $0) } != nil
        }

        private static func isLabel(_ text: String) -> Bool {
            text.utf8.count <= 50 && text.utf8.allSatisfy(TopicName.isTopicCharacter)
        }

        private static func isTimeToLive(_ text: String) -> Bool {
            guard let duration = V1Duration(text) else { return false }
            return ValueRules.isTimeToLive(duration.roundedUp)
        }
    }
}

extension V1Schema.Problem.Reason {
    fileprivate static let notText = Self.wrongType("TYPE_STRING", "a string")
    fileprivate static let noObject = Self.wrongType("an object", "an object")
}

extension V1Schema.Problem {
    /// The refusal by the v1 facade.
    var refusal: Refusal {
        switch self.reason {
        case .unknown: .unknown(self.path)
        case .wrongType(let type, _): .wrongType(self.path, type)
        case .repeated: .repeated(self.path)
        case .badValue(let demand): .badValue(self.path, demand)
        }
    }

    /// The problem in the words of the REST API.
    var field: Refusal.Field {
        let pointer = self.path.pointer.description
        return switch self.reason {
        case .unknown(let hint): Refusal.Field(.unknownField, at: pointer, "This field is not known here\(hint)")
        case .wrongType(_, let type): Refusal.Field(.invalidField, at: pointer, "This must be \(type)")
        case .repeated: Refusal.Field(.duplicateKey, at: pointer, "This field is given twice, in different spellings")
        case .badValue(let demand): Refusal.Field(.invalidField, at: pointer, "This must be \(demand)")
        }
    }
}
