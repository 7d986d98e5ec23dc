import Foundation

/// Checks the values of a request that satisfies the schema; its failures carry an FcmError.
///
/// The first violated rule decides, in the order target, data, common fields, Android, Apple, web, size.
struct V1MessageRules {
    private let request: [String: JSONValue]
    let body: [String: JSONValue]
    private var notes: [String]

    init(_ request: [String: JSONValue], notes: [String]) throws(V1Failure) {
        guard case .object(let body)? = request["message"] else { throw .noRecipient }
        self.request = request
        self.body = body
        self.notes = notes
    }

    func message() throws(V1Failure) -> AcceptedMessage {
        var notes = self.notes
        let target = try self.target(notes: &notes)
        for (field, object) in [("", self.body), ("android.", self.android), ("webpush.", self.webpush)] {
            try self.checkData(object.strings("data"), field: "message.\(field)data")
        }
        try self.checkLabels()
        let timeToLive = try self.checkAndroid()
        try self.checkApple()
        try self.checkWeb()
        try self.checkSize(of: target)
        if self.body["name"] != nil { notes.append("message.name is for answers only") }
        var isValidateOnly = false
        if case .bool(true)? = self.request["validate_only"] { isValidateOnly = true }
        return AcceptedMessage(
            target: target,
            content: self.content(timeToLive: timeToLive),
            isDryRun: isValidateOnly,
            notes: notes
        )
    }

    // MARK: Parts

    var notification: [String: String] { self.body.strings("notification") }
    var android: [String: JSONValue] { self.body.object("android") }
    var androidNotification: [String: JSONValue] { self.android.object("notification") }
    var apns: [String: JSONValue] { self.body.object("apns") }
    var applePayload: [String: JSONValue] { self.apns.object("payload") }
    var webpush: [String: JSONValue] { self.body.object("webpush") }

    // MARK: Rules

    private func target(notes: inout [String]) throws(V1Failure) -> MessageTarget {
        for name in ["token", "fid"] {
            guard let token = self.body.string(name) else { continue }
            guard !token.isEmpty, !token.hasPrefix(TopicName.prefix) else { throw .invalidToken }
            return .device(token)
        }
        if let topic = self.body.string("topic") {
            guard TopicName.isValid(topic.utf8) else { throw .invalid("message.topic", "Invalid topic name") }
            return .topic(topic)
        }
        guard let text = self.body.string("condition") else { throw .noRecipient }
        guard let condition = try? ConditionEvaluator(text, profile: .v1) else {
            throw .invalid("message.condition", "Invalid condition expression provided.")
        }
        if condition.canonical != text {
            notes.append("the condition is not in canonical form: \(condition.canonical)")
        }
        return .condition(condition)
    }

    private func checkData(_ data: [String: String], field: String) throws(V1Failure) {
        guard let key = data.keys.sorted().first(where: Self.isReserved) else { return }
        throw .reservedKey(key, field: field)
    }

    private static func isReserved(_ key: String) -> Bool {
        key.isEmpty || key == "from" || key == "message_type" || key.hasPrefix("google.")
            || key.hasPrefix("gcm.notification.")
    }

    private func checkLabels() throws(V1Failure) {
        let parts = [("", self.body), ("android.", self.android), ("apns.", self.apns), ("webpush.", self.webpush)]
        for (field, object) in parts {
            guard let label = object.object("fcm_options").string("analytics_label") else { continue }
            guard (1...50).contains(label.utf8.count), TopicName.isValid(label.utf8) else {
                throw .invalid("message.\(field)fcm_options.analytics_label", "Invalid analytics label")
            }
        }
    }

    private func checkSize(of target: MessageTarget) throws(V1Failure) {
        var limit = PayloadRules.maxTopicBytes
        if case .device = target { limit = PayloadRules.maxDeviceBytes }
        let data = self.body.strings("data")
        let android = self.notification.merging(self.androidNotification.mapValues(\.text)) { _, own in own }
        let sizes = [
            PayloadRules.byteCount(data, self.notification),
            PayloadRules.byteCount(self.android["data"] == nil ? data : self.android.strings("data"), android),
            self.webpush["data"] == nil ? 0 : PayloadRules.byteCount(self.webpush.strings("data"), self.notification),
        ]
        guard sizes.allSatisfy({ $0 <= limit }) else { throw .tooBig }
        // Apple's own limit is the same for every target.
        let payload = JSONValue.object(self.applePayload).compactJSON
        guard payload.utf8.count <= PayloadRules.maxDeviceBytes else {
            throw .invalid("message.apns.payload", "Payload is too big", message: "APNS message is too big")
        }
    }

    // MARK: Delivered content

    private func content(timeToLive: Int?) -> DeliveredMessage {
        let aps = self.applePayload.object("aps")
        var platforms: [String: String] = [:]
        for name in ["android", "apns", "webpush", "fcm_options"] {
            platforms[name] = self.body[name]?.compactJSON
        }
        return DeliveredMessage(
            data: self.body.strings("data"),
            notification: self.notification,
            collapseKey: self.android.string("collapse_key"),
            priority: self.android.string("priority")?.lowercased(),
            timeToLive: timeToLive,
            contentAvailable: aps["content-available"].map { _ in true },
            mutableContent: aps["mutable-content"].map { _ in true },
            restrictedPackageName: self.android.string("restricted_package_name"),
            platforms: platforms
        )
    }
}

/// The rules of the platform-specific parts.
extension V1MessageRules {
    private static let maxCollapseIDBytes = 64

    // MARK: Android

    func checkAndroid() throws(V1Failure) -> Int? {
        if let color = self.androidNotification.string("color"),
            color.wholeMatch(of: /#[0-9a-fA-F]{6}/) == nil
        {
            throw .invalid("message.android.notification.color", "Invalid color")
        }
        for (name, value) in self.androidNotification.object("light_settings").object("color") {
            guard case .number(let number) = value, (0...1).contains(number.doubleValue) else {
                throw .invalid("message.android.notification.light_settings.color.\(name)", "Invalid color")
            }
        }
        guard let text = self.android.string("ttl"), let ttl = V1Duration(text) else { return nil }
        let maximum = Int64(PayloadRules.timeToLive.upperBound)
        let isTooLong = ttl.seconds > maximum || (ttl.seconds == maximum && ttl.hasFraction)
        let isBelowZero = ttl.isNegative && (ttl.seconds > 0 || ttl.hasFraction)
        guard !isTooLong, !isBelowZero else {
            throw .invalid("message.android.ttl", "Invalid ttl: it must be from 0 to \(maximum) seconds")
        }
        return Int(ttl.seconds)
    }

    // MARK: Apple

    func checkApple() throws(V1Failure) {
        let headers = self.apns.strings("headers")
        if let priority = headers["apns-priority"], !["10", "5", "1"].contains(priority) {
            throw .invalid("message.apns.headers", "apns-priority must be 10, 5 or 1")
        }
        if let expiration = headers["apns-expiration"], !Self.isDigits(expiration) {
            throw .invalid("message.apns.headers", "apns-expiration must be a number of seconds")
        }
        if let id = headers["apns-collapse-id"], id.utf8.count > Self.maxCollapseIDBytes {
            throw .invalid("message.apns.headers", "apns-collapse-id is longer than 64 bytes")
        }
        try self.checkAps()
        // FCM reports a background push with the wrong priority this way, although no token is wrong.
        if self.isBackgroundPush, let priority = headers["apns-priority"], priority != "5" {
            throw .invalid("message.token", "Invalid registration token", message: "Invalid registration token")
        }
    }

    private var isBackgroundPush: Bool {
        let aps = Set(self.applePayload.object("aps").keys).subtracting(["content-available", "mutable-content"])
        return self.notification.isEmpty && self.androidNotification.isEmpty && aps.isEmpty
    }

    private func checkAps() throws(V1Failure) {
        guard let value = self.applePayload["aps"] else { return }
        guard case .object(let aps) = value else { throw .invalid("message.apns.payload.aps", "aps must be an object") }
        for (name, value) in aps.sorted(by: { $0.key < $1.key }) where !Self.isAcceptable(value, for: name) {
            throw .invalid("message.apns.payload.aps.\(name)", "Invalid value: \(value.compactJSON)")
        }
    }

    private static func isAcceptable(_ value: JSONValue, for name: String) -> Bool {
        switch (name, value) {
        case ("alert", .string), ("alert", .object), ("sound", .string), ("sound", .object):
            return true
        case ("badge", .number(let number)):
            return Int(exactly: number.doubleValue).map { $0 >= 0 } ?? false
        case ("content-available", .number(let number)), ("mutable-content", .number(let number)):
            return number.doubleValue == 1
        case ("category", .string), ("thread-id", .string):
            return true
        case ("alert", _), ("sound", _), ("badge", _), ("content-available", _), ("mutable-content", _),
            ("category", _), ("thread-id", _):
            return false
        default:
            return true
        }
    }

    // MARK: Web

    func checkWeb() throws(V1Failure) {
        let headers = self.webpush.strings("headers")
        if let ttl = headers["TTL"], !Self.isDigits(ttl) {
            throw .invalid("message.webpush.headers", "TTL must be a number of seconds")
        }
        if let urgency = headers["Urgency"], !["very-low", "low", "normal", "high"].contains(urgency) {
            throw .invalid("message.webpush.headers", "Urgency must be very-low, low, normal or high")
        }
        if let link = self.webpush.object("fcm_options").string("link"), !link.lowercased().hasPrefix("https://") {
            throw .invalid("message.webpush.fcm_options.link", "The link must be an HTTPS URL")
        }
    }

    private static func isDigits(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}

/// A protobuf duration as JSON writes it: decimal seconds, up to nine fractional digits, the suffix `s`.
struct V1Duration: Equatable {
    private static let maxSeconds: Int64 = 315_576_000_000
    /// Whole seconds, rounded down for non-negative durations.
    let seconds: Int64
    let isNegative: Bool
    /// True if there is a fraction besides the whole seconds.
    let hasFraction: Bool

    init?(_ text: String) {
        guard text.utf8.last == UInt8(ascii: "s") else { return nil }
        var digits = text.utf8.dropLast()
        self.isNegative = digits.first == UInt8(ascii: "-")
        if self.isNegative { digits = digits.dropFirst() }
        let parts = digits.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } }),
            let whole = parts.first, let seconds = Int64(String(decoding: whole, as: UTF8.self)),
            seconds <= Self.maxSeconds
        else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""[...].utf8
        guard fraction.count <= 9 else { return nil }
        self.seconds = seconds
        self.hasFraction = fraction.contains { $0 != 0x30 }
    }
}
