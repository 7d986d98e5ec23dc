import FCMModel
import Testing

@Suite("Notification")
struct NotificationTests {
    @Test("The keys are those of the protocol")
    func keys() {
        #expect(
            Set(NotificationKey.allCases.map(\.rawValue)) == [
                "title", "body", "image", "subtitle", "sound", "icon", "color", "tag", "click_action",
                "android_channel_id", "title_loc_key", "body_loc_key",
            ]
        )
    }

    @Test("A text can be set, replaced and removed, and others keep their order")
    func texts() {
        var notification = Notification()
        notification[.body] = "b"
        notification[.title] = "t"
        notification[.tag] = "g"
        notification[.body] = "c"
        #expect(notification.texts.map(\.key) == [.body, .title, .tag])
        #expect(notification[.body] == "c")
        notification[.title] = nil
        #expect(notification.texts.map(\.key) == [.body, .tag])
        #expect(notification[.title] == nil)
        notification[.title] = nil
        #expect(notification.texts.count == 2)
    }

    @Test("A notification is empty until any key is set")
    func emptiness() {
        #expect(Notification().isEmpty)
        var text = Notification()
        text[.icon] = "i"
        #expect(!text.isEmpty)
        text[.icon] = nil
        #expect(text.isEmpty)
        var badge = Notification()
        badge.badge = 0
        #expect(!badge.isEmpty)
        var title = Notification()
        title.titleLocArgs = []
        #expect(!title.isEmpty)
        var body = Notification()
        body.bodyLocArgs = ["a"]
        #expect(!body.isEmpty)
    }
}

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

@Suite("ValueRules")
struct ValueRulesTests {
    @Test("A colour is # and six hexadecimal digits", arguments: ["#000000", "#ffFFff", "#09aFcD"])
    func colors(text: String) {
        #expect(ValueRules.isColor(text))
    }

    @Test(
        "Nothing else is a colour",
        arguments: [
            "", "#", "000000", "#00000", "#0000000", "#00000g", "#00000G", "#00000/", "#00000:", "#00000@", "#00000`",
            " #000000", "#000000 ", "##00000", "#0000\u{E9}", "red", "#\u{FF10}\u{FF10}",
        ]
    )
    func noColors(text: String) {
        #expect(!ValueRules.isColor(text))
    }

    @Test(
        "A badge is a text of digits up to a positive 32-bit number",
        arguments: [
            ("0", 0), ("7", 7), ("007", 7), ("2147483647", 2_147_483_647), ("2147483648", nil),
            ("9223372036854775808", nil), ("99999999999999999999999", nil), ("", nil), ("-1", nil), ("+1", nil),
            ("1.0", nil), ("1e1", nil), (" 1", nil), ("0x1", nil), ("\u{0661}", nil),
        ] as [(String, Int?)]
    )
    func badges(text: String, expected: Int?) {
        #expect(ValueRules.badge(fromDigits: text) == expected)
    }

    @Test(
        "A time to live is at most four weeks",
        arguments: [
            (-1, false), (0, true), (2_419_200, true), (2_419_201, false), (.min, false), (.max, false),
        ] as [(Int, Bool)]
    )
    func timesToLive(seconds: Int, isValid: Bool) {
        #expect(ValueRules.isTimeToLive(seconds) == isValid)
    }

    @Test(
        "FCM's own words are refused as data keys",
        arguments: [
            "", "from", "message_type", "google", "google.x", "googlefoo", "gcm", "gcmfoo", "gcm.notification.title",
            "google\u{301}", "gcm\u{301}x", "gcm\u{200D}", "gcm\u{FE0F}",
        ]
    )
    func refusedDataKeys(key: String) {
        #expect(ValueRules.isRefusedDataKey(key))
    }

    @Test(
        "Other words are allowed as data keys",
        arguments: [
            "From", "fromage", "from\u{301}", "message_types", "Message_Type", "GCM", "Google", "goog", "gc", "xgcm",
            "x_google", "collapse_key", "to", " ", "\u{0}",
        ]
    )
    func allowedDataKeys(key: String) {
        #expect(!ValueRules.isRefusedDataKey(key))
    }

    @Test(
        "A device group may have any name but an empty one, one of control characters, and the gateway's own",
        arguments: [
            ("shop.family", true), ("shop/family", true), ("fcm-gateway", true), ("x fcm-gateway/", true),
            ("größe 😀", true),
            ("", false), ("a\n", false), ("fcm-gateway/", false), ("fcm-gateway/shop/family", false),
            ("fcm-gateway/\u{301}", false),
        ] as [(String, Bool)]
    )
    func groupNames(name: String, isValid: Bool) {
        #expect(ValueRules.isGroupName(name) == isValid)
    }
}
