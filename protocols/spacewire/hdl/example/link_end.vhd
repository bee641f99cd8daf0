-- A link end for simulation, written from ECSS-E-ST-50-12C (2008) and independent of the one in Rust that it talks to: 200 MHz,
-- 10 Mbit/s until Run, then 200 Mbit/s. The host takes every N-char at once.
library ieee;
use ieee.std_logic_1164.all;

package link_types is
  type state_t is (error_reset, error_wait, ready, started, connecting, running);
  type cause_t is (no_error, silence, bad_parity, bad_escape, bad_credit, bad_sequence, too_late);
  type counts_t is record
    sent_fcts, sent_nchars, sent_times, received_nulls, received_fcts, received_nchars, received_times, restarts : natural;
  end record;
end package;

library ieee;
use ieee.std_logic_1164.all;
use work.link_types.all;

entity link_end is
  port (
    clk : in std_logic;
    data_in, strobe_in : in std_logic;
    data_out, strobe_out : out std_logic := '0';
    -- N-chars: 0 to 255, 256 for EOP, 257 for EEP. One is taken in the clock before tx_taken.
    tx_valid : in std_logic;
    tx_nchar : in natural;
    tx_taken : out std_logic := '0';
    rx_valid : out std_logic := '0';
    rx_nchar : out natural := 0;
    tick_in : in std_logic;
    time_in : in natural;
    tick_out : out std_logic := '0';
    time_out : out natural := 0;
    -- Mistakes on request: the parity bit of the next character, and silence.
    wrong_parity, silent : in std_logic;
    state_out : out state_t := error_reset;
    cause_out : out cause_t := no_error;
    credit_out : out natural := 0;
    counts_out : out counts_t := (others => 0)
  );
end entity;

architecture simulation of link_end is
  constant RESET_CLOCKS : natural := 1280;
  constant WAIT_CLOCKS : natural := 2560;
  constant QUIET_CLOCKS : natural := 170;
  constant SLOW_CLOCKS : natural := 20;
  constant ESC_FCT : std_logic_vector(7 downto 0) := "01110100";
begin
  process (clk)
    variable state : state_t := error_reset;
    variable timer : natural := RESET_CLOCKS;
    variable counts : counts_t := (others => 0);
    -- The receiver.
    variable last_data, last_strobe : std_logic := '0';
    variable heard, in_step, escaped, got_null, inside : boolean := false;
    variable quiet, place : natural := 0;
    variable window : std_logic_vector(7 downto 0) := (others => '0');
    variable content : natural := 0;
    variable odd, flag : std_logic := '0';
    variable failed : cause_t := no_error;
    -- The transmitter.
    variable data, strobe : std_logic := '0';
    variable bits : std_logic_vector(0 to 15);
    variable left, next_bit, hold : natural := 0;
    variable tx_odd : std_logic := '0';
    variable offered, sent_null, sending, discarding, spoil, time_waits : boolean := false;
    variable time_code, credit, promised : natural := 0;

    procedure deliver(nchar : natural) is
    begin
      rx_valid <= '1';
      rx_nchar <= nchar;
      inside := nchar < 256;
    end procedure;

    procedure receive_nchar(nchar : natural) is
    begin
      if state /= running then
        failed := bad_sequence;
      elsif promised = 0 then
        failed := bad_credit;
      else
        promised := promised - 1;
        counts.received_nchars := counts.received_nchars + 1;
        deliver(nchar);
      end if;
    end procedure;

    procedure receive_null is
    begin
      counts.received_nulls := counts.received_nulls + 1;
      got_null := true;
    end procedure;

    procedure receive_fct is
    begin
      counts.received_fcts := counts.received_fcts + 1;
      if state /= connecting and state /= running then
        failed := bad_sequence;
      elsif credit + 8 > 56 then
        failed := bad_credit;
      else
        credit := credit + 8;
        if state = connecting then
          state := running;
        end if;
      end if;
    end procedure;

    procedure receive_control(two_bits : natural) is
    begin
      -- The first of the two bits weighs 1.
      if escaped then
        escaped := false;
        if two_bits = 0 then
          receive_null;
        else
          failed := bad_escape;
        end if;
      else
        case two_bits is
          when 0 => receive_fct;
          when 2 => receive_nchar(256);
          when 1 => receive_nchar(257);
          when others => escaped := true;
        end case;
      end if;
    end procedure;

    procedure receive_data(byte : natural) is
    begin
      if not escaped then
        receive_nchar(byte);
      elsif state = running then
        escaped := false;
        counts.received_times := counts.received_times + 1;
        tick_out <= '1';
        time_out <= byte;
      else
        failed := bad_sequence;
      end if;
    end procedure;

    procedure receive_bit(b : std_logic) is
    begin
      if not in_step then
        window := window(6 downto 0) & b;
        if window = ESC_FCT then
          in_step := true;
          escaped := false;
          place := 0;
          odd := '0';
          receive_null;
        end if;
        return;
      end if;
      -- The parity bit and the flag close the span that the content of the character before began.
      odd := odd xor b;
      place := place + 1;
      if place = 2 then
        flag := b;
        if odd = '0' then
          failed := bad_parity;
        end if;
        odd := '0';
        content := 0;
      elsif place > 2 and b = '1' then
        content := content + 2 ** (place - 3);
      end if;
      if place = 4 and flag = '1' then
        place := 0;
        receive_control(content);
      elsif place = 10 then
        place := 0;
        receive_data(content);
      end if;
    end procedure;

    procedure listen is
    begin
      if (data_in xor strobe_in) /= (last_data xor last_strobe) then
        heard := true;
        quiet := 0;
        receive_bit(data_in);
      elsif heard then
        quiet := quiet + 1;
        if quiet = QUIET_CLOCKS then
          failed := silence;
        end if;
      end if;
    end procedure;

    -- A control character has two bits of content, the first one on the left.
    procedure put(is_control : std_logic; value : std_logic_vector) is
      variable p : std_logic;
    begin
      p := not (tx_odd xor is_control);
      if spoil then
        p := not p;
        spoil := false;
      end if;
      bits(left to left + 1 + value'length) := p & is_control & value;
      left := left + 2 + value'length;
      tx_odd := xor value;
    end procedure;

    procedure put_byte(byte : natural) is
      variable value : std_logic_vector(0 to 7);
    begin
      for i in 0 to 7 loop
        value(i) := '1' when (byte / 2 ** i) mod 2 = 1 else '0';
      end loop;
      put('0', value);
    end procedure;

    procedure put_nchar(nchar : natural) is
    begin
      credit := credit - 1;
      counts.sent_nchars := counts.sent_nchars + 1;
      sending := nchar < 256;
      if nchar < 256 then
        put_byte(nchar);
      elsif nchar = 256 then
        put('1', "01");
      else
        put('1', "10");
      end if;
    end procedure;

    -- Time-codes before FCTs before N-chars before NULLs.
    procedure choose is
    begin
      left := 0;
      next_bit := 0;
      if state = running and time_waits then
        time_waits := false;
        counts.sent_times := counts.sent_times + 1;
        put('1', "11");
        put_byte(time_code);
      elsif (state = connecting or state = running) and sent_null and promised <= 48 then
        promised := promised + 8;
        counts.sent_fcts := counts.sent_fcts + 1;
        put('1', "00");
      elsif state = running and credit > 0 and offered and not discarding then
        tx_taken <= '1';
        put_nchar(tx_nchar);
      else
        sent_null := true;
        put('1', "11");
        put('1', "00");
      end if;
    end procedure;

    procedure send is
    begin
      if hold > 0 then
        hold := hold - 1;
      elsif state < started then
        -- Strobe first, so that the lines never change together.
        if strobe = '1' then
          strobe := '0';
          hold := SLOW_CLOCKS - 1;
        else
          data := '0';
        end if;
      elsif silent = '0' then
        if next_bit = left then
          choose;
        end if;
        if bits(next_bit) = data then
          strobe := not strobe;
        end if;
        data := bits(next_bit);
        next_bit := next_bit + 1;
        hold := 0 when state = running else SLOW_CLOCKS - 1;
      end if;
    end procedure;

    procedure enter(to_state : state_t; clocks : natural) is
    begin
      state := to_state;
      timer := clocks;
    end procedure;

    procedure go_down is
    begin
      if state = running then
        counts.restarts := counts.restarts + 1;
        cause_out <= failed;
      end if;
      if inside then
        deliver(257);
      end if;
      discarding := discarding or sending;
      enter(error_reset, RESET_CLOCKS);
      heard := false;
      in_step := false;
      got_null := false;
      sent_null := false;
      sending := false;
      time_waits := false;
      window := (others => '0');
      quiet := 0;
      credit := 0;
      promised := 0;
      left := 0;
      next_bit := 0;
      tx_odd := '0';
    end procedure;

    procedure move_on is
    begin
      if timer > 0 then
        timer := timer - 1;
      end if;
      case state is
        when error_reset =>
          if timer = 0 then
            enter(error_wait, WAIT_CLOCKS);
          end if;
        when error_wait =>
          if timer = 0 then
            enter(ready, 0);
          end if;
        when ready => enter(started, WAIT_CLOCKS);
        when started | connecting =>
          if state = started and got_null then
            enter(connecting, WAIT_CLOCKS);
          elsif timer = 0 then
            failed := too_late;
          end if;
        when running => null;
      end case;
    end procedure;
  begin
    if rising_edge(clk) then
      -- An N-char that was taken in the last clock is still there.
      offered := tx_valid = '1' and tx_taken = '0';
      tx_taken <= '0';
      rx_valid <= '0';
      tick_out <= '0';
      failed := no_error;
      spoil := spoil or wrong_parity = '1';
      if tick_in = '1' then
        time_waits := true;
        time_code := time_in;
      end if;
      if state /= error_reset then
        listen;
      end if;
      last_data := data_in;
      last_strobe := strobe_in;
      move_on;
      if failed /= no_error then
        go_down;
      end if;
      -- The rest of a packet that was cut.
      if discarding and offered then
        offered := false;
        tx_taken <= '1';
        discarding := tx_nchar < 256;
      end if;
      send;
      data_out <= data;
      strobe_out <= strobe;
      state_out <= state;
      credit_out <= credit;
      counts_out <= counts;
    end if;
  end process;
end architecture;
