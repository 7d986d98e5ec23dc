/// A message as the gateway understands it, whichever protocol it came in by and leaves by.
///
/// Every present text is non-empty, data values are strings, and ranges have been checked: a decoder establishes this
/// before anything else reads the value.
package struct Message: Sendable, Hashable {
    /// How urgently a message is delivered (T1 `priority`).
    package enum Priority: String, Sendable, Hashable, CaseIterable {
        case normal
        case high
    }

    /// The longest time that FCM keeps a message for an offline device, in seconds: four weeks.
    package static let maxTimeToLive = 2_419_200

    /// What the user sees; `nil` where no key is set.
    package var notification: Notification?
    /// Custom pairs, in the caller's order, without repeated keys.
    package var data: [DataEntry] = []
    /// Delivery urgency; absent means the protocols' shared default.
    package var priority: Priority?
    /// Seconds that FCM may keep the message, 0 to ``maxTimeToLive``; absent means four weeks.
    package var timeToLive: Int?
    /// Messages that share a key may replace one another while a device is away.
    package var collapseKey: String?
    /// Wakes an idle Apple app.
    package var contentAvailable = false
    /// Lets an Apple service extension rewrite the notification.
    package var mutableContent = false
    /// Delivers only to tokens of this Android package.
    package var restrictedPackageName: String?
    /// Asks for validation without delivery.
    package var dryRun = false

    /// What a caller of HTTP v1 wrote, for an upstream that speaks v1 too (V-FACADE).
    ///
    /// Where it is present, it is what is sent; the properties above then hold only what limits and shedding look at.
    package var verbatim: V1Verbatim?

    /// A message without content.
    package init() {}

    /// Whether a user waits for it, so that it comes before others when not all can be served.
    package var isUrgent: Bool { self.priority == .high }
}

/// One custom pair of a message.
package struct DataEntry: Sendable, Hashable {
    /// The name; never empty or reserved once validated.
    package var key: String
    /// The text; may be empty.
    package var value: String

    /// A custom pair.
    package init(key: String, value: String) {
        self.key = key
        self.value = value
    }
}
