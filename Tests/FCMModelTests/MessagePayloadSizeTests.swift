import FCMModel
import Testing

@Suite("Message.payloadBytes")
struct MessagePayloadSizeTests {
    @Test("A message without content has no size, whatever its options")
    func options() {
        var message = Message()
        #expect(message.payloadBytes == 0)
        message.priority = .high
        message.timeToLive = 60
        message.collapseKey = "key"
        message.restrictedPackageName = "com.example"
        message.contentAvailable = true
        message.mutableContent = true
        message.dryRun = true
        #expect(message.payloadBytes == 0)
    }

    @Test(
        "Keys and values of data count in bytes of UTF-8",
        arguments: [
            ("k", "", 1), ("k", "v", 2), ("score", "3x1", 8), ("\u{E9}", "\u{1F600}", 6), ("k", "\"\\\n/", 5),
            ("k", "\u{0}", 2), ("k", "e\u{301}", 4),
        ]
    )
    func data(key: String, value: String, expected: Int) {
        var message = Message()
        message.data = [DataEntry(key: key, value: value)]
        #expect(message.payloadBytes == expected)
        message.data.append(DataEntry(key: "twice", value: ""))
        #expect(message.payloadBytes == expected + 5)
    }

    @Test("Notification keys count with their names on the wire")
    func notification() {
        var notification = Notification()
        notification[.clickAction] = "a"
        #expect(notification.payloadBytes == 13)
        notification[.androidChannelID] = "\u{E9}"
        #expect(notification.payloadBytes == 13 + 20)
        var message = Message()
        message.notification = notification
        message.data = [DataEntry(key: "k", value: "v")]
        #expect(message.payloadBytes == 35)
    }

    @Test("A badge counts as digits", arguments: [(0, 6), (7, 6), (10, 7), (2_147_483_647, 15)])
    func badge(badge: Int, expected: Int) {
        var notification = Notification()
        notification.badge = badge
        #expect(notification.payloadBytes == expected)
    }

    @Test(
        "Lists of arguments count as compact JSON",
        arguments: [
            ([], 2), (["a", "b"], 9), (["\""], 6), (["\n", "\u{1}", "/"], 19), (["\u{E9}"], 6), ([""], 4),
        ] as [([String], Int)]
    )
    func arguments(list: [String], expected: Int) {
        var notification = Notification()
        notification.titleLocArgs = list
        #expect(notification.payloadBytes == "title_loc_args".utf8.count + expected)
        notification.bodyLocArgs = list
        #expect(notification.payloadBytes == "title_loc_argsbody_loc_args".utf8.count + 2 * expected)
    }
}
