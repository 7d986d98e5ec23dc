import FCMModel
import Testing

@Suite("Notification")
struct NotificationTests {
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
        let changes: [(inout Notification) -> Void] = [
            { $0[.icon] = "i" }, { $0.badge = 0 }, { $0.titleLocArgs = [] }, { $0.bodyLocArgs = ["a"] },
        ]
        for change in changes {
            var notification = Notification()
            change(&notification)
            #expect(!notification.isEmpty)
        }
    }
}

@Suite("ValueRules")
struct ValueRulesTests {
    @Test(
        "A colour is # and exactly six hexadecimal digits",
        arguments: [
            "#000000", "#ffFFff", "#09aFcD",
            "", "#", "000000", "#00000", "#0000000", "#00000g", "#00000G", "#00000/", "#00000:", "#00000@", "#00000`",
            " #000000", "#000000 ", "##00000", "#0000\u{E9}", "red", "#\u{FF10}\u{FF10}",
        ]
    )
    func colors(text: String) {
        #expect(ValueRules.isColor(text) == ["#000000", "#ffFFff", "#09aFcD"].contains(text))
    }

    @Test(
        "A badge is a string of digits up to 2,147,483,647",
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
        "Reserved data keys are compared by bytes, despite combining marks",
        arguments: [
            ("google\u{301}", true), ("gcm\u{200D}", true), ("from\u{301}", false), ("message_types", false),
            ("goog", false), ("gc", false), (" ", false), ("\u{0}", false),
        ]
    )
    func dataKeys(key: String, isRefused: Bool) {
        #expect(ValueRules.isRefusedDataKey(key) == isRefused)
    }

    @Test(
        "A group name is not empty and has no control characters and no gateway prefix",
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
