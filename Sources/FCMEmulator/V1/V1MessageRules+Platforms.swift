import Foundation

/// The rules of the platforms' own parts.
extension V1MessageRules {
    private static let maxCollapseIDBytes = 64

    // MARK: Android

    /// Checks the life of the message, and colors.
    ///
    /// - Returns: the life in seconds, if it is given.
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
        // The service says so of a background push at the wrong priority, although no token is wrong.
        if self.isBackgroundPush, let priority = headers["apns-priority"], priority != "5" {
            throw .invalid("message.token", "Invalid registration token", message: "Invalid registration token")
        }
    }

    /// Whether an Apple device would be shown nothing.
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
