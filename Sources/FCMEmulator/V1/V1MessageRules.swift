/// Checks the values of a request that satisfies the schema; what it finds carries an FcmError.
///
/// The first rule broken answers, in the order target, data, common fields, Android, Apple, web, size.
struct V1MessageRules {
    private let request: [String: JSONValue]
    let body: [String: JSONValue]
    private var notes: [String]

    /// Takes a request as ``V1SchemaCheck`` left it.
    ///
    /// - Throws: when there is no message.
    init(_ request: [String: JSONValue], notes: [String]) throws(V1Failure) {
        guard case .object(let body)? = request["message"] else { throw .noRecipient }
        self.request = request
        self.body = body
        self.notes = notes
    }

    /// The message, once every rule is satisfied.
    ///
    /// - Throws: the first rule broken.
    func message(project: String) throws(V1Failure) -> V1Message {
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
        return V1Message(
            project: project,
            target: target,
            content: self.content(timeToLive: timeToLive),
            isValidateOnly: isValidateOnly,
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

    private func target(notes: inout [String]) throws(V1Failure) -> V1Target {
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

    /// Keys the service keeps for itself, and the empty one, which no platform could deliver.
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

    private func checkSize(of target: V1Target) throws(V1Failure) {
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

    // MARK: What is delivered

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
