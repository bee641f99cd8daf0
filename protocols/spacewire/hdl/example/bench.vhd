-- Two link ends that share no code, wire to wire: one in VHDL (link_end.vhd) and one in Rust, called once every clock of 5 ns.
-- It prints a table of what it measured, and stops with an error at the first thing that is not as it should be.
library ieee;
use ieee.std_logic_1164.all;
use std.textio.all;
use work.hodo_spacewire.all;
use work.link_types.all;

entity bench is
end entity;

architecture simulation of bench is
  constant PERIOD : time := 5 ns;
  constant RATE_MBIT_PER_S : real := 200.0;
  signal clk : std_logic := '0';
  signal done : boolean := false;
  signal data_there, strobe_there, data_back, strobe_back : std_logic := '0';
  signal tx_valid, tx_taken, rx_valid, tick_in, tick_out, wrong_parity, silent : std_logic := '0';
  signal tx_nchar, rx_nchar, time_in, time_out, credit : natural := 0;
  signal state : state_t;
  signal cause : cause_t;
  signal counts : counts_t;

  type source_t is record
    place, packets_left, packets : natural;
  end record;
  type sink_t is record
    place, packets, eeps : natural;
    last : time;
  end record;

  function pattern(place : natural) return natural is
  begin
    return (place * 37 + 11) mod 256;
  end function;

  function level(l : std_logic) return integer is
  begin
    if l = '1' then
      return 1;
    end if;
    return 0;
  end function;

  function formula(size : positive) return real is
    constant N : real := real(size);
  begin
    return RATE_MBIT_PER_S * 8.0 * N / (10.0 * N + 4.0 + (N + 1.0) / 2.0);
  end function;
begin
  clk <= not clk after PERIOD / 2 when not done;

  in_vhdl : entity work.link_end port map (
    clk => clk, data_in => data_there, strobe_in => strobe_there, data_out => data_back, strobe_out => strobe_back,
    tx_valid => tx_valid, tx_nchar => tx_nchar, tx_taken => tx_taken, rx_valid => rx_valid, rx_nchar => rx_nchar,
    tick_in => tick_in, time_in => time_in, tick_out => tick_out, time_out => time_out,
    wrong_parity => wrong_parity, silent => silent,
    state_out => state, cause_out => cause, credit_out => credit, counts_out => counts);

  script : process
    variable in_rust : integer;
    variable size : positive := 60;
    variable from_vhdl, from_rust : source_t := (others => 0);
    variable to_vhdl, to_rust : sink_t := (0, 0, 0, 0 ns);
    variable credit_max, echoes : natural := 0;
    variable ignored : integer;

    procedure check(holds : boolean; what : string) is
    begin
      assert holds report what severity failure;
    end procedure;

    procedure print(text : string) is
      variable l : line;
    begin
      write(l, text);
      writeline(output, l);
    end procedure;

    function microseconds(span : time) return string is
    begin
      return to_string(real(span / 1 ns) / 1000.0, 3);
    end function;

    impure function current(source : source_t) return natural is
    begin
      if source.place = size then
        return EOP;
      end if;
      return pattern(source.place);
    end function;

    procedure advance(source : inout source_t) is
    begin
      if source.place = size then
        source.place := 0;
        source.packets := source.packets + 1;
        source.packets_left := source.packets_left - 1;
      else
        source.place := source.place + 1;
      end if;
    end procedure;

    procedure judge(sink : inout sink_t; nchar : natural) is
    begin
      if nchar = EEP then
        sink.eeps := sink.eeps + 1;
        sink.place := 0;
      elsif nchar = EOP then
        check(sink.place = size, "a packet of " & integer'image(sink.place) & " bytes");
        sink.packets := sink.packets + 1;
        sink.place := 0;
        sink.last := now;
      else
        check(nchar = pattern(sink.place), "a wrong byte");
        sink.place := sink.place + 1;
      end if;
    end procedure;

    -- Both hosts.
    procedure serve is
      variable nchar, code : integer;
    begin
      if tx_taken = '1' then
        advance(from_vhdl);
      end if;
      tx_valid <= '1' when from_vhdl.packets_left > 0 else '0';
      tx_nchar <= current(from_vhdl);
      if rx_valid = '1' then
        judge(to_vhdl, rx_nchar);
      end if;
      if from_rust.packets_left > 0 and spw_to_send(in_rust) < 64 then
        check(spw_push(in_rust, current(from_rust)) = 1, "no room to push");
        advance(from_rust);
      end if;
      nchar := spw_pop(in_rust);
      if nchar >= 0 then
        judge(to_rust, nchar);
      end if;
      code := spw_pop_time_code(in_rust);
      if code >= 0 then
        ignored := spw_send_time_code(in_rust, code);
      end if;
      if tick_out = '1' then
        check(time_out = echoes mod 64, "a time-code out of order");
        echoes := echoes + 1;
      end if;
    end procedure;

    procedure clock is
      variable levels : integer;
    begin
      wait until rising_edge(clk);
      levels := spw_step(in_rust, level(data_back), level(strobe_back));
      data_there <= '1' when levels mod 2 = 1 else '0';
      strobe_there <= '1' when levels / 2 = 1 else '0';
      credit_max := credit when credit > credit_max;
      serve;
    end procedure;

    procedure clocks(n : natural) is
    begin
      for i in 1 to n loop
        clock;
      end loop;
    end procedure;

    impure function both_run return boolean is
    begin
      return state = running and spw_state(in_rust) = RUN;
    end function;

    procedure wait_for_run(limit : time) is
      constant SINCE : time := now;
    begin
      while not both_run loop
        clock;
        check(now - SINCE < limit, "the link does not start in time");
      end loop;
    end procedure;

    -- Ends the packets in progress, and waits until everything has arrived.
    procedure drain is
    begin
      from_vhdl.packets_left := 1;
      from_rust.packets_left := 1;
      for i in 1 to 100_000 loop
        clock;
        exit when from_vhdl.packets_left = 0 and from_rust.packets_left = 0 and spw_to_send(in_rust) = 0;
      end loop;
      clocks(400);
      check(to_rust.place = 0 and to_vhdl.place = 0, "a packet has no end");
    end procedure;

    -- Sends whole packets from both sides, and waits until they have arrived.
    procedure exchange(bytes : positive; packets : positive) is
      variable there, back : natural;
    begin
      size := bytes;
      there := to_rust.packets + packets;
      back := to_vhdl.packets + packets;
      from_vhdl.packets_left := packets;
      from_rust.packets_left := packets;
      for i in 1 to 100 + packets * (bytes + 2) * 12 loop
        clock;
        exit when to_rust.packets = there and to_vhdl.packets = back;
      end loop;
      check(to_rust.packets = there and to_vhdl.packets = back, "packets are missing");
      clocks(200);
    end procedure;

    procedure check_start_up is
    begin
      wait_for_run(30 us);
      check(now > 20.2 us and now < 21.0 us, "Run at " & time'image(now));
      print("start_us" & HT & microseconds(now));
      clocks(400);
    end procedure;

    procedure check_counts is
      variable expected : natural;
    begin
      exchange(60, 100);
      expected := counts.sent_nchars / 8 + 7;
      check(counts.sent_nchars = 6100 and counts.received_nchars = 6100, "N-chars");
      check(counts.sent_fcts = expected and counts.received_fcts = expected, "FCTs of the end in VHDL");
      check(spw_count(in_rust, SENT_FCTS) = expected, "FCTs sent by Rust");
      check(spw_count(in_rust, RECEIVED_FCTS) = expected, "FCTs received by Rust");
      check(spw_count(in_rust, SENT_DATA) = 6000 and spw_count(in_rust, RECEIVED_DATA) = 6000, "data of the end in Rust");
      check(spw_count(in_rust, SENT_EOPS) = 100 and spw_count(in_rust, RECEIVED_EOPS) = 100, "EOPs of the end in Rust");
      print("fcts" & HT & integer'image(expected));
    end procedure;

    procedure check_time_codes is
    begin
      for code in 0 to 63 loop
        time_in <= code;
        tick_in <= '1';
        clock;
        tick_in <= '0';
        clocks(80);
      end loop;
      check(echoes = 64 and counts.sent_times = 64, "time-codes echoed");
      check(spw_count(in_rust, RECEIVED_TIME_CODES) = 64 and spw_count(in_rust, SENT_TIME_CODES) = 64, "time-codes of Rust");
      print("time_codes" & HT & integer'image(echoes));
    end procedure;

    procedure follow(sink : sink_t; first : natural; wanted : natural; since, until_then : inout time) is
    begin
      if sink.packets = first and since = 0 ns then
        since := sink.last;
      elsif sink.packets = first + wanted and until_then = 0 ns then
        until_then := sink.last;
      end if;
    end procedure;

    impure function rate(packets : natural; span : time) return real is
    begin
      return real(packets) * 8.0 * real(size) / (real(span / 1 ns) / 1000.0);
    end function;

    -- Both sides send as fast as they can; the first 20 packets do not count.
    procedure check_rate(bytes : positive; packets : positive; within : real) is
      variable there_0, there_1, back_0, back_1 : time := 0 ns;
      variable there_first, back_first : natural;
      variable there, back : real;
    begin
      size := bytes;
      there_first := to_rust.packets + 20;
      back_first := to_vhdl.packets + 20;
      from_vhdl.packets_left := natural'high;
      from_rust.packets_left := natural'high;
      while there_1 = 0 ns or back_1 = 0 ns loop
        clock;
        follow(to_rust, there_first, packets, there_0, there_1);
        follow(to_vhdl, back_first, packets, back_0, back_1);
      end loop;
      drain;
      there := rate(packets, there_1 - there_0);
      back := rate(packets, back_1 - back_0);
      print("rate" & HT & integer'image(bytes) & HT & to_string(there, 3) & HT & to_string(back, 3) & HT & to_string(formula(bytes), 3));
      check(abs (there / formula(bytes) - 1.0) < within, "the rate to the end in Rust");
      check(abs (back / formula(bytes) - 1.0) < within, "the rate to the end in VHDL");
    end procedure;

    type fault_t is (parity_there, parity_back, silence_there);

    procedure make_fault(fault : fault_t) is
    begin
      case fault is
        when parity_there =>
          wrong_parity <= '1';
          clock;
          wrong_parity <= '0';
        when parity_back => ignored := spw_inject(in_rust, FAULT_PARITY);
        when silence_there => silent <= '1';
      end case;
    end procedure;

    -- A fault amid packets: the end that has to notice it says why, each cuts no more than a packet, and the link comes back. The other end
    -- notices that its line falls silent, or takes the way of the lines to low for a bit of wrong parity: any cause will do.
    procedure check_recovery(fault : fault_t; by_rust : integer; by_vhdl : cause_t) is
      variable failure : integer := NONE;
      variable since : time;
      variable eeps, restarts : natural;
    begin
      eeps := to_rust.eeps + to_vhdl.eeps;
      restarts := counts.restarts;
      size := 60;
      from_vhdl.packets_left := natural'high;
      from_rust.packets_left := natural'high;
      clocks(3000);
      since := now;
      make_fault(fault);
      while failure = NONE or counts.restarts = restarts loop
        clock;
        failure := spw_pop_failure(in_rust) when failure = NONE;
        check(now - since < 3 us, "the fault is not noticed");
        silent <= '0' when failure /= NONE;
      end loop;
      check(by_rust = NONE or failure = by_rust, "the cause by Rust: " & integer'image(failure));
      check(by_vhdl = no_error or cause = by_vhdl, "the cause by VHDL: " & cause_t'image(cause));
      wait_for_run(30 us);
      print("recovery" & HT & fault_t'image(fault) & HT & microseconds(now - since));
      clocks(3000);
      drain;
      eeps := to_rust.eeps + to_vhdl.eeps - eeps;
      check(eeps >= 1 and eeps <= 2, "packets ended by EEP: " & integer'image(eeps));
      exchange(100, 10);
    end procedure;
  begin
    in_rust := spw_open(5000, 1, 0, 56);
    check(in_rust > 0, "the end in Rust does not open");
    check_start_up;
    check_counts;
    check_time_codes;
    check_rate(1, 400, 0.001);
    check_rate(8, 400, 0.001);
    check_rate(60, 200, 0.001);
    check_rate(1024, 40, 0.001);
    check_recovery(parity_there, ERROR_PARITY, no_error);
    check_recovery(parity_back, NONE, bad_parity);
    check_recovery(silence_there, ERROR_DISCONNECT, no_error);
    check(credit_max = 56, "the credit reaches 56");
    check(spw_close(in_rust) = 1, "the end in Rust does not close");
    print("passed" & HT & microseconds(now));
    done <= true;
    wait;
  end process;
end architecture;
