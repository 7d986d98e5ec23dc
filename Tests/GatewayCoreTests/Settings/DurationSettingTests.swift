import GatewayCore
import Testing

@Suite("Settings")
struct DurationSettingTests {
    @Test(
        "A duration is kept to the nanosecond",
        arguments: [
            Duration.zero, .nanoseconds(1), .milliseconds(100), .seconds(20), .seconds(600),
            .seconds(86_400 * 365 * 100),
        ]
    )
    func exact(duration: Duration) {
        let setting = DurationSetting(.seconds(1))
        setting.change(to: duration)
        #expect(setting.current == duration)
        #expect(DurationSetting(duration).current == duration)
    }

    @Test("A setting tells the value of the last change")
    func changed() {
        let setting = Setting("one")
        #expect(setting.current == "one")
        setting.change(to: "two")
        #expect(setting.current == "two")
    }
}
