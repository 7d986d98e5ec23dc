import FCMModel
import NIOCore
import VectorTestKit

/// A small generator of random numbers that is the same on every machine.
struct SplitMix64: RandomNumberGenerator {
    /// The seeds of the property tests.
    static let seeds: Range<UInt64> = 0..<25

    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed &>> 31)
    }

    /// A number from 0 to the bound, exclusive; slightly biased, but fast in a debug build.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: (self.next() &>> 33) % UInt64(bound))
    }

    mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[self.below(choices.count)]
    }
}

/// Draws texts that a careless encoder would damage.
enum RandomText {
    /// Ranges of code points, one as likely as another: controls, what JSON escapes, every length of UTF-8, marks that
    /// combine, separators that some parsers take for line ends, emoji with their joiners, the ends of planes.
    private static let ranges: [ClosedRange<UInt32>] = [
        0x00...0x1F, 0x20...0x7E, 0x22...0x22, 0x5C...0x5C, 0x2F...0x2F, 0x7F...0x9F, 0xA0...0x7FF, 0x300...0x36F,
        0x800...0xD7FF, 0x200B...0x2029, 0xE000...0xFFFF, 0xFEFF...0xFEFF, 0xFE0F...0xFE0F, 0x1F300...0x1FAFF,
        0x1F3FB...0x1F3FF, 0x10000...0x10FFFF,
    ]

    /// Draws a text whose number of code points is in the range.
    static func draw(_ lengths: ClosedRange<Int>, using random: inout SplitMix64) -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<(lengths.lowerBound + random.below(lengths.count)) {
            let range = random.pick(Self.ranges)
            let point = range.lowerBound + UInt32(random.below(range.count))
            // No range contains a surrogate, so this never fails.
            if let scalar = Unicode.Scalar(point) { text.append(scalar) }
        }
        return String(text)
    }

    /// Draws characters that topics may have.
    static func topic(_ lengths: ClosedRange<Int>, using random: inout SplitMix64) -> String {
        let characters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%")
        return String((0..<(lengths.lowerBound + random.below(lengths.count))).map { _ in random.pick(characters) })
    }
}

/// Draws messages that a decoder can return, and targets of the legacy protocol.
enum RandomMessage {
    /// Draws a target with a legacy form, except a group's key, which decodes as a token.
    static func target(using random: inout SplitMix64) throws -> Target {
        switch random.below(4) {
        case 0:
            return .token(Self.token(using: &random))
        case 1:
            return .tokens((0...random.below(20)).map { _ in Self.token(using: &random) })
        case 2:
            guard let name = TopicName(RandomText.topic(1...40, using: &random)) else { break }
            return .topic(name)
        default:
            return .condition(try TopicCondition(parsing: "'a' in topics && ('b' in topics || 'c%20' in topics)"))
        }
        throw VectorProblem("no valid topic was drawn")
    }

    /// Draws a token, which has no control characters.
    private static func token(using random: inout SplitMix64) -> String {
        let scalars = RandomText.draw(0...30, using: &random).unicodeScalars
            .filter { $0.value >= 0x20 && $0.value != 0x7F }
        return "t" + String(String.UnicodeScalarView(scalars))
    }

    /// Draws a message that fits a target's limit on size.
    static func message(for target: Target, using random: inout SplitMix64) -> Message {
        var message = Message()
        if random.below(2) == 0 { message.priority = random.pick(Message.Priority.allCases) }
        if random.below(2) == 0 {
            message.timeToLive = random.pick([0, 1, 60, Message.maxTimeToLive, random.below(Message.maxTimeToLive)])
        }
        if random.below(2) == 0 { message.collapseKey = RandomText.draw(1...20, using: &random) }
        if random.below(2) == 0 { message.restrictedPackageName = RandomText.draw(1...20, using: &random) }
        message.contentAvailable = random.below(2) == 0
        message.mutableContent = random.below(2) == 0
        message.dryRun = random.below(2) == 0
        let notification = Self.notification(using: &random)
        message.notification = notification.isEmpty ? nil : notification
        for index in 0..<random.below(12) {
            // The number keeps keys apart and out of the reserved ones.
            let key = "\(index):" + RandomText.draw(0...10, using: &random)
            message.data.append(DataEntry(key: key, value: RandomText.draw(0...40, using: &random)))
        }
        while message.payloadBytes > target.maxPayloadBytes, !message.data.isEmpty { message.data.removeLast() }
        if message.payloadBytes > target.maxPayloadBytes { message.notification = nil }
        return message
    }

    private static func notification(using random: inout SplitMix64) -> Notification {
        var notification = Notification()
        for key in NotificationKey.allCases where random.below(3) == 0 {
            notification[key] = key == .color ? "#09afAF" : RandomText.draw(1...20, using: &random)
        }
        if random.below(3) == 0 {
            notification.badge = random.pick([0, 1, ValueRules.maxBadge, random.below(1_000)])
        }
        if random.below(3) == 0 { notification.titleLocArgs = Self.arguments(using: &random) }
        if random.below(3) == 0 { notification.bodyLocArgs = Self.arguments(using: &random) }
        return notification
    }

    private static func arguments(using random: inout SplitMix64) -> [String] {
        (0..<random.below(4)).map { _ in RandomText.draw(0...10, using: &random) }
    }
}

extension RandomMessage {
    /// Draws a message that v1 carries completely, and a target of one call.
    static func forV1(using random: inout SplitMix64) throws -> (Message, Target) {
        var target = try Self.target(using: &random)
        if case .tokens(let tokens) = target { target = .token(tokens[0]) }
        return (Self.forV1(Self.message(for: target, using: &random), using: &random), target)
    }

    /// Removes members that v1 drops, and sometimes sets URLs for browsers.
    private static func forV1(_ drawn: Message, using random: inout SplitMix64) -> Message {
        var message = drawn
        if var notification = message.notification {
            for key in [NotificationKey.icon, .clickAction] where notification[key] != nil && random.below(2) == 0 {
                notification[key] = random.pick([
                    "https://a.example/i", "HTTPS://a", "http://a", "https:/a", "https://",
                ])
            }
            if notification[.titleLocKey] == nil || notification.titleLocArgs == [] { notification.titleLocArgs = nil }
            if notification[.bodyLocKey] == nil || notification.bodyLocArgs == [] { notification.bodyLocArgs = nil }
            message.notification = notification.isEmpty ? nil : notification
        }
        if message.notification == nil { message.mutableContent = false }
        return message
    }
}

extension Message {
    /// All texts in UTF-8, since `==` treats composed and decomposed letters as equal.
    var bytesOfTexts: [[UInt8]] {
        var texts: [String] = []
        for text in self.notification?.texts ?? [] { texts += [text.key.rawValue, text.value] }
        for arguments in [self.notification?.titleLocArgs, self.notification?.bodyLocArgs] {
            texts += ["arguments"] + (arguments ?? ["none"])
        }
        texts += ["collapse", self.collapseKey ?? "none", "package", self.restrictedPackageName ?? "none"]
        for entry in self.data { texts += [entry.key, entry.value] }
        return texts.map { Array($0.utf8) }
    }
}
