import FCMModel
import NIOCore
import StrictJSON
import Testing
import VectorTestKit

@Suite("MessageDigest")
struct MessageDigestTests {
    /// The content of a decoded request.
    private struct Decoded: Equatable {
        var target: Target
        var message: Message

        var digest: [UInt8] { MessageDigestTests.digest(self.target, self.message) }
    }

    /// The protocol of a request.
    private enum Dialect: CaseIterable {
        case legacy
        case v1

        func decode(_ body: String) throws -> Decoded {
            switch self {
            case .legacy:
                let request = try LegacyRequestDecoder.decode(ByteBuffer(string: body))
                return Decoded(target: request.target, message: request.message)
            case .v1:
                let request = try V1RequestDecoder.decode(ByteBuffer(string: body))
                return Decoded(target: request.target, message: request.message)
            }
        }

        func body(using random: inout SplitMix64) throws -> VectorJSON {
            switch self {
            case .legacy:
                let target = try RandomMessage.target(using: &random)
                let message = RandomMessage.message(for: target, using: &random)
                return try VectorJSON(parsing: LegacyRequestEncoder.encode(message, to: target))
            case .v1:
                let (message, target) = try RandomMessage.forV1(using: &random)
                let body = V1Calls(message, to: target, now: 1_700_000_000).body(at: 0)
                return try VectorJSON(parsing: body)
                    .adding(#"{"sizes": [0, -1.50, 2e3, {"b": 10, "a": null}], "\/x": true}"#)
            }
        }
    }

    private static func digest(_ target: Target, _ message: Message) -> [UInt8] {
        var digest = MessageDigest()
        digest.add(target)
        digest.add(message)
        return digest.finish()
    }

    @Test("The digest ignores member order, blanks, escapes and spellings of numbers", arguments: SplitMix64.seeds)
    func respelled(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for dialect in Dialect.allCases {
            for _ in 0..<10 {
                let body = try dialect.body(using: &random)
                let digest = try dialect.decode(String(buffer: body.serialised())).digest
                for _ in 0..<5 {
                    let text = body.respelled(using: &random)
                    #expect(try dialect.decode(text).digest == digest, "\(text)")
                }
            }
        }
    }

    @Test("Every change of a value or a name that changes the message changes the digest", arguments: SplitMix64.seeds)
    func changed(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for dialect in Dialect.allCases {
            for _ in 0..<5 {
                let body = try dialect.body(using: &random)
                var met: [[UInt8]: Decoded] = [:]
                for change in [body] + body.changes() {
                    // Invalid messages have no digest, and ignored members don't affect it.
                    guard let decoded = try? dialect.decode(String(buffer: change.serialised())) else { continue }
                    #expect(met[decoded.digest] ?? decoded == decoded, "\(change)")
                    met[decoded.digest] = decoded
                }
                #expect(met.count > 1)
            }
        }
    }

    @Test("Different targets and messages have different digests")
    func neighbours() throws {
        let targets: [Target] = [
            .token("ab"), .tokens(["ab"]), .tokens(["a", "b"]), .tokens(["b", "a"]), .tokens(["a", ""]),
            .tokens(["", "a"]),
            .installation("ab"), .installations(["ab"]), .notificationKey("ab"), .topic(try #require(TopicName("ab"))),
            .condition(try TopicCondition(parsing: "'ab' in topics")),
        ]
        var messages = [Message()]
        func add(_ change: (inout Message) -> Void) {
            var message = Message()
            change(&message)
            messages.append(message)
        }
        for data in [[("a", "bc")], [("ab", "c")], [("a", "b"), ("c", "")], [("a", ""), ("b", "c")], [("", "abc")]] {
            add { $0.data = data.map { DataEntry(key: $0.0, value: $0.1) } }
        }
        func addNotification(_ change: (inout Notification) -> Void) {
            var notification = Notification()
            change(&notification)
            add { $0.notification = notification }
        }
        for key in NotificationKey.allCases { for value in ["a", "ab"] { addNotification { $0[key] = value } } }
        for arguments in [[], [""], ["a"], ["a", "b"], ["ab"], ["b", "a"]] {
            addNotification { $0.titleLocArgs = arguments }
            addNotification { $0.bodyLocArgs = arguments }
        }
        for badge in [0, 1, 10] { addNotification { $0.badge = badge } }
        for priority in Message.Priority.allCases { add { $0.priority = priority } }
        for seconds in [0, 1, 10] { add { $0.timeToLive = seconds } }
        for text in ["a", "ab"] {
            add { $0.collapseKey = text }
            add { $0.restrictedPackageName = text }
        }
        add { $0.contentAvailable = true }
        add { $0.mutableContent = true }
        add { $0.dryRun = true }
        var digests: Set<[UInt8]> = []
        for target in targets { for message in messages { digests.insert(Self.digest(target, message)) } }
        #expect(digests.count == targets.count * messages.count)
    }

    @Test("The digest ignores the order of data and compares keys by bytes")
    func order() {
        var (one, other) = (Message(), Message())
        one.data = [DataEntry(key: "\u{E9}", value: "1"), DataEntry(key: "e\u{301}", value: "2")]
        other.data = one.data.reversed()
        #expect(Self.digest(.token("t"), one) == Self.digest(.token("t"), other))
        other.data[0].value = "1"
        other.data[1].value = "2"
        #expect(Self.digest(.token("t"), one) != Self.digest(.token("t"), other))
    }

    @Test("Message and Notification have exactly the properties known to these tests")
    func completeness() {
        let message = Mirror(reflecting: Message()).children.compactMap(\.label)
        #expect(
            message == [
                "notification", "data", "priority", "timeToLive", "collapseKey", "contentAvailable", "mutableContent",
                "restrictedPackageName", "dryRun", "platforms", "passThrough",
            ]
        )
        let notification = Mirror(reflecting: Notification()).children.compactMap(\.label)
        #expect(notification == ["texts", "badge", "titleLocArgs", "bodyLocArgs"])
    }
}

extension VectorJSON {
    /// A v1 body with an `apns.payload` of this text.
    fileprivate func adding(_ payload: String) throws -> VectorJSON {
        guard case .object(let members) = self else { throw VectorProblem("no object: \(self)") }
        return .object(
            try members.map { member in
                guard member.key == "message", case .object(let fields) = member.value else { return member }
                var added = try VectorJSON(parsing: payload)
                if let apns = fields.first(where: { $0.key == "apns" }), case .object(let own) = apns.value {
                    added = .object(own.filter { $0.key != "payload" } + [Member(key: "payload", value: added)])
                } else {
                    added = .object([Member(key: "payload", value: added)])
                }
                let others = fields.filter { $0.key != "apns" }
                return Member(key: "message", value: .object(others + [Member(key: "apns", value: added)]))
            }
        )
    }

    /// The same value as another encoder would write it.
    fileprivate func respelled(using random: inout SplitMix64) -> String {
        func blank() -> String { random.pick(["", "", " ", "\n\t", " \r\n"]) }
        func list(_ parts: [String], _ open: String, _ close: String) -> String {
            open + blank() + parts.joined(separator: "\(blank()),\(blank())") + blank() + close
        }
        switch self {
        case .object(let members):
            let parts = members.shuffled(using: &random)
                .map { "\(Self.quoted($0.key, &random))\(blank()):\(blank())\($0.value.respelled(using: &random))" }
            return list(parts, "{", "}")
        case .array(let elements): return list(elements.map { $0.respelled(using: &random) }, "[", "]")
        case .string(let text): return Self.quoted(text, &random)
        case .number(let number):
            guard let integer = number.integer else {
                return random.pick([number.text, "\(number.text)e0", "\(number.text)0"])
            }
            if integer == 0 { return random.pick(["0", "-0", "0.00", "0E+7"]) }
            return random.pick([
                "\(integer)", "\(integer).00", "\(integer)0e-1", "\(integer)E+0", "\(integer)000.0e-03",
            ])
        case .bool(let flag): return "\(flag)"
        case .null: return "null"
        }
    }

    private static func quoted(_ text: String, _ random: inout SplitMix64) -> String {
        var quoted = ""
        for scalar in text.unicodeScalars {
            let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
            if mustEscape || random.below(4) == 0 {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16, uppercase: random.below(2) == 0)
                    quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                quoted.unicodeScalars.append(scalar)
            }
        }
        return "\"\(quoted)\""
    }

    /// Copies of the value with one change each: of a string, number, Boolean or name, or of a member's presence.
    fileprivate func changes() -> [VectorJSON] {
        switch self {
        case .object(let members):
            var changes: [VectorJSON] = []
            for (index, member) in members.enumerated() {
                func with(_ other: Member?) -> VectorJSON {
                    .object(members[..<index] + (other.map { [$0] } ?? []) + members[(index + 1)...])
                }
                changes += member.value.changes().map { with(Member(key: member.key, value: $0)) }
                changes.append(with(Member(key: member.key + "x", value: member.value)))
                changes.append(with(nil))
            }
            return changes
        case .array(let elements):
            return elements.indices.flatMap { index in
                elements[index].changes().map { .array(elements[..<index] + [$0] + elements[(index + 1)...]) }
            }
        case .string(let text): return [.string(text + "x")]
        case .number(let number):
            return (JSONNumber(text: "1\(number.text.filter { $0 != "-" })")).map { [.number($0)] } ?? []
        case .bool(let flag): return [.bool(!flag)]
        case .null: return [.bool(true)]
        }
    }
}
